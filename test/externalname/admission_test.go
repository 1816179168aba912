package externalname_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/admission"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/exporttest"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// siteKey is the key of a kind whose segments have each rule that a policy knows.
type siteKey struct{ Stage, ID, Zone string }

var siteNames = externalname.Scheme[siteKey]{
	Codec: externalname.Compound(
		externalname.Field("stage", func(k *siteKey) *string { return &k.Stage }, externalname.Enum("dev", "prod"), externalname.FoldCase()),
		externalname.Field("id", func(k *siteKey) *string { return &k.ID }, externalname.IsGUID()),
		externalname.Field("zone", func(k *siteKey) *string { return &k.Zone }, externalname.Optional()),
	),
	Legacy: []externalname.Form[siteKey]{externalname.LegacyObjectName[siteKey]()},
}

// site returns an object that is not created yet.
func (w *world) site(name, externalName string) *unstructured.Unstructured {
	o := manifest("Site", name, map[string]any{})
	o.SetNamespace(w.namespace)
	if externalName != "" {
		o.SetAnnotations(map[string]string{"crossplane.io/external-name": externalName})
	}
	return o
}

// A policy of the API server refuses what the provider would refuse, when the name is written. It leaves alone what the
// provider reads, and objects whose name does not change. An author ships it as YAML.
func TestPolicyRefusesMalformedNames(t *testing.T) {
	w := newWorld(t)
	if err := controlplane.InstallCRDs(t.Context(), shared.Config(), crd("Site", "sites")); err != nil {
		t.Fatal(err)
	}
	before := w.site("before", "dev/old")
	before.SetFinalizers([]string{"example.org/held"})
	w.create(before)
	policy, binding, err := admission.Policy("site-names", groupVersion.WithResource("sites"), siteNames)
	if err != nil {
		t.Fatal(err)
	}
	var yaml bytes.Buffer
	if err := admission.Write(&yaml, policy, binding); err != nil {
		t.Fatal(err)
	}
	objects, err := exporttest.ReadObjects(&yaml)
	if err != nil || len(objects) != 2 {
		t.Fatalf("%d objects: %v", len(objects), err)
	}
	for _, o := range objects {
		w.create(o)
		t.Cleanup(func() { _ = w.client.Delete(context.WithoutCancel(t.Context()), o) })
	}
	i := 0
	refused := func(name string) error {
		i++
		return w.client.Create(t.Context(), w.site(fmt.Sprintf("site-%d", i), name))
	}
	w.await("policy", func() string {
		if refused("test/x") == nil {
			return "not in force"
		}
		return ""
	})

	const id = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"
	for reason, name := range map[string]string{
		"another stage": "test/" + id, "no GUID": "dev/not-a-guid", "braces": "dev/{" + id + "}", "one segment": "dev", "four segments": "dev/" + id + "/a/b",
		"a path": "dev/" + id + "/..", "an escaped path": "dev/" + id + "/%2E", "blank": "  ", "a bad escape": "dev/" + id + "/%zz",
		"too long": "dev/" + id + "/" + strings.Repeat("a", 2000), "as long as an annotation": strings.Repeat("a", 200<<10), "the name of another object": "before",
		"a control character": "dev/" + id + "/a\x1bb",
	} {
		if _, err := siteNames.Read(name, "object"); err == nil {
			t.Errorf("%s: the provider reads %q", reason, name)
		}
		if err := refused(name); !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), "expected <stage>/<id>/[<zone>], where stage is one of dev, prod") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	for reason, name := range map[string]string{
		"none": "", "canonical": "dev/" + id + "/eu", "without a zone": "prod/" + id + "/", "by hand": " PROD/" + strings.ToUpper(id) + " ", "escaped": "dev/" + id + "/%41\u00a0b%2Fc",
	} {
		if err := refused(name); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if err := w.client.Create(t.Context(), w.site("itself", "itself")); err != nil {
		t.Errorf("the name that crossplane-runtime writes: %v", err)
	}

	// An object that has a malformed name already.
	w.patch(before, `{"spec":{"forProvider":{"title":"x"}}}`)
	if err := w.client.Patch(t.Context(), before, mergePatch(`{"metadata":{"annotations":{"crossplane.io/external-name":"dev/new"}}}`)); !kerrors.IsInvalid(err) {
		t.Errorf("another malformed name: %v", err)
	}
	w.delete(before)
	w.patch(before, `{"metadata":{"finalizers":null}}`)
	w.awaitGone(before)
}
