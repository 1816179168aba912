package crdmigrator_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

type crdEdit = func(*apiextensionsv1.CustomResourceDefinition)

// withVersions sets versions such as v1; * marks the storage version, - one that is
// not served.
func withVersions(flags ...string) crdEdit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = nil
		for _, f := range flags {
			crd.Spec.Versions = append(crd.Spec.Versions,
				version(strings.TrimRight(f, "*-"), !strings.Contains(f, "-"), strings.Contains(f, "*")))
		}
	}
}

// withConversion gives the CRD a complete conversion webhook, and edits it.
func withConversion(edit func(*apiextensionsv1.CustomResourceConversion)) crdEdit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")},
				ConversionReviewVersions: []string{"v1"},
			},
		}
		edit(crd.Spec.Conversion)
	}
}

// lives are the histories that a CRD may have before the next release.
var lives = map[string]func(*widgets){
	"v1 alone": func(w *widgets) { w.fill("v1", 3) },
	"both served": func(w *widgets) {
		w.setVersions(version("v1", true, true), version("v2", true, false))
		w.fill("v1", 3)
	},
	"flipped": func(w *widgets) { w.fill("v1", 3); w.flip() },
	"migrated": func(w *widgets) {
		w.fill("v1", 3)
		w.flip()
		w.mustMigrate(w.quickMigrator(storageversion.Options{}))
	},
	"migrated, no object": func(w *widgets) {
		w.flip()
		w.mustMigrate(w.quickMigrator(storageversion.Options{}))
	},
	"migrated, unserved": func(w *widgets) {
		w.fill("v1", 3)
		w.flip()
		w.mustMigrate(w.quickMigrator(storageversion.Options{}))
		w.setVersions(version("v1", false, false), version("v2", true, true))
	},
	"migrated, unserved, cleaned": func(w *widgets) {
		w.fill("v1", 3)
		w.flip()
		w.setVersions(version("v1", false, false), version("v2", true, true))
		w.mustMigrate(w.quickMigrator(storageversion.Options{}))
	},
	"version lost": func(w *widgets) { w.fill("v1", 3); w.flip(); w.setStoredVersions("v0", "v1", "v2") },
	"storedVersions without the storage version": func(w *widgets) {
		w.setVersions(version("v1", true, true), version("v2", true, false))
		w.fill("v2", 3) // stored at v1, while managedFields name v2
		w.setStoredVersions("v2")
	},
	"storedVersions trimmed without a migration": func(w *widgets) {
		w.setVersions(version("v1", true, true), version("v2", true, false))
		w.fill("v2", 3)
		w.flip()
		w.setStoredVersions("v2")
	},
}

// TestNextRelease checks a next release for each history of a CRD, compares the
// check with the dry run, then applies the release, and compares the check with the
// state of the objects.
func TestNextRelease(t *testing.T) {
	t.Parallel()
	refused, unsafe, safe := releasecheck.Refused, releasecheck.Unsafe, releasecheck.Safe
	cases := []struct {
		reason string
		life   string
		next   crdEdit
		want   releasecheck.Result
		says   *godwit.Reason // the first reason; none if nil
	}{
		{"nothing changes", "v1 alone", withVersions("v1*"), safe, nil},
		{"a version is added", "v1 alone", withVersions("v1*", "v2"), safe, nil},
		{"the storage version changes", "both served", withVersions("v1", "v2*"), safe, nil},
		{"a new version replaces the old one at once", "v1 alone", withVersions("v2*"), refused, releasecheck.ReasonStoredVersionRemoved},
		{"it changes the storage version and removes at once", "both served", withVersions("v2*"), refused, releasecheck.ReasonStoredVersionRemoved},
		{"it removes before the migration", "flipped", withVersions("v2*"), refused, releasecheck.ReasonStoredVersionRemoved},
		{"it removes after the migration", "migrated", withVersions("v2*"), unsafe, releasecheck.ReasonManagedFieldsRemovedVersion},
		{"it unserves after the migration", "migrated", withVersions("v1-", "v2*"), safe, nil},
		{"it removes without a cleanup", "migrated, unserved", withVersions("v2*"), unsafe, releasecheck.ReasonManagedFieldsRemovedVersion},
		{"it removes after the cleanup", "migrated, unserved, cleaned", withVersions("v2*"), safe, releasecheck.ReasonStoredVersionsTrusted},
		{"it removes a version without objects", "migrated, no object", withVersions("v2*"), safe, nil},
		{"a stored version was lost before", "version lost", withVersions("v1", "v2*"), refused, releasecheck.ReasonStoredVersionRemoved},
		{"the lost version comes back", "version lost", withVersions("v0-", "v1", "v2*"), safe, nil},
		{"it removes a version that only etcd shows", "storedVersions without the storage version", withVersions("v2*"), unsafe, releasecheck.ReasonStoredAtRemovedVersion},
		{"nothing is served", "flipped", withVersions("v1-", "v2-*"), unsafe, releasecheck.ReasonNoServedVersion},
		{"the storage version is not served", "flipped", withVersions("v1", "v2-*"), safe, releasecheck.ReasonUnservedStorageVersion},
		{"no storage version", "flipped", withVersions("v1", "v2"), refused, decision.ReasonNoStorageVersion},
		{"no version", "flipped", withVersions(), refused, decision.ReasonNoStorageVersion},
		{"two storage versions", "flipped", withVersions("v1*", "v2*"), refused, releasecheck.ReasonSeveralStorageVersions},
		{"a version twice", "flipped", withVersions("v1", "v1", "v2*"), refused, releasecheck.ReasonInvalidVersion},
		{"an odd version", "flipped", withVersions("v1", "v2*", "3.0"), refused, releasecheck.ReasonInvalidVersion},
		{"a version without schema", "flipped", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Schema = nil }, refused, releasecheck.ReasonInvalidVersion},
		{"another kind", "flipped", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Names.Kind, crd.Spec.Names.ListKind = "Gadget", "GadgetList"
		}, refused, releasecheck.ReasonImmutableField},
		{"another scope", "flipped", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }, refused, releasecheck.ReasonImmutableField},
		{"another group", "flipped", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Group = "other.example.com" }, refused, releasecheck.ReasonImmutableField},
		{"another plural", "flipped", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Plural = "gadgets" }, refused, releasecheck.ReasonImmutableField},
		{"webhook without an address", "flipped", withConversion(func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook.ClientConfig = nil }), refused, releasecheck.ReasonInvalidConversion},
		{"webhook without anything", "flipped", withConversion(func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook = nil }), refused, releasecheck.ReasonInvalidConversion},
		{"webhook with two addresses", "flipped", withConversion(func(c *apiextensionsv1.CustomResourceConversion) {
			c.Webhook.ClientConfig.Service = &apiextensionsv1.ServiceReference{Namespace: "a", Name: "b"}
		}), refused, releasecheck.ReasonInvalidConversion},
		{"webhook of a future protocol", "flipped", withConversion(func(c *apiextensionsv1.CustomResourceConversion) {
			c.Webhook.ConversionReviewVersions = []string{"v9"}
		}), refused, releasecheck.ReasonInvalidConversion},
		{"webhook for nothing", "flipped", withConversion(func(c *apiextensionsv1.CustomResourceConversion) { c.Strategy = apiextensionsv1.NoneConverter }), refused, releasecheck.ReasonInvalidConversion},
		{"an odd strategy", "flipped", withConversion(func(c *apiextensionsv1.CustomResourceConversion) { c.Strategy = "Magic" }), refused, releasecheck.ReasonInvalidConversion},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			lives[tc.life](w)
			next := w.next(tc.next)
			f, err := newChecker(t, w.config, releasecheck.Options{}).Observe(t.Context(), next)
			if err != nil {
				t.Fatal(err)
			}
			dryRun := f.DryRun
			f.DryRun = releasecheck.DryRun{}
			check := releasecheck.For(f)
			if check.Result != tc.want || first(check) != tc.says {
				t.Errorf("check: %+v, want %s because of %q", check, tc.want, tc.says)
			}
			if dryRun.Accepted == (check.Result == refused) {
				t.Errorf("check = %s, but the dry run is %+v", check.Result, dryRun)
			}
			if err := w.release(next); (err != nil) != (check.Result == refused) {
				t.Errorf("check = %s, but the API server answers: %v", check.Result, err)
			} else if err == nil {
				w.mustBeUnreadable(check.Result == unsafe)
			}
		})
	}
}

// TestCheckRefersToEtcdForTrimmedStoredVersions: another client trimmed
// storedVersions and migrated nothing, which no API shows. The check reports that it
// trusts storedVersions, and how to verify etcd.
func TestCheckRefersToEtcdForTrimmedStoredVersions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	lives["storedVersions trimmed without a migration"](w)
	next := w.next(withVersions("v2*"))
	check, err := newChecker(t, w.config, releasecheck.Options{}).Check(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(check.Reasons, func(r releasecheck.Finding) bool { return r.Reason == releasecheck.ReasonStoredVersionsTrusted })
	if check.Result != releasecheck.Safe || i < 0 || !slices.Contains(check.Reasons[i].Fix.Actions(), godwit.Action(godwit.VerifyMigration{CRD: w.name})) {
		t.Errorf("check: %+v, want Safe with a proof from etcd as its fix", check)
	}
	if err := w.release(next); err != nil {
		t.Fatal(err)
	}
	w.mustBeUnreadable(true)
}

// TestCheckReportsTheServersRefusal: the dry run finds errors that do not concern
// versions.
func TestCheckReportsTheServersRefusal(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	lives["flipped"](w)
	next := w.next(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {}} // not structural
	})
	check, err := newChecker(t, w.config, releasecheck.Options{}).Check(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if check.Result != releasecheck.Refused || first(check) != releasecheck.ReasonServerRefused {
		t.Errorf("check: %+v, want Refused by the API server", check)
	}
	if w.release(next) == nil {
		t.Error("the API server accepts the release, want it refused")
	}
}

// TestReleaseKeepsWhatItDoesNotName: the CRD is of apiextensions.k8s.io/v1beta1, so that it preserves unknown fields. The API server
// accepts the release as a whole, and refuses it by each command that keeps this field. A file that says false is accepted.
func TestReleaseKeepsWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		annotations map[string]string
		manager     string // of the apply that made the CRD
		command     string
		want        releasecheck.Result
	}{
		"applied by the client":     {annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec": {"scope": "Namespaced"}}`}, command: "kubectl apply", want: releasecheck.Refused},
		"applied in the API server": {manager: "flux", command: "kubectl apply --server-side --field-manager=flux", want: releasecheck.Refused},
		"by Helm":                   {annotations: map[string]string{"meta.helm.sh/release-name": "widgets"}, command: "helm upgrade", want: releasecheck.Unknown},
		"created":                   {command: "kubectl apply", want: releasecheck.Unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			key := "/registry/apiextensions.k8s.io/customresourcedefinitions/" + w.name
			w.preserveUnknownFields(key, c.annotations, c.manager)
			next := w.next(func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.ManagedFields, crd.Annotations, crd.Spec.PreserveUnknownFields = nil, nil, false
				schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
				schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"mode": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"auto"`)}}}
			})
			checker := newChecker(t, w.config, releasecheck.Options{})
			var check releasecheck.Check
			await(t, "the API server to end its own writes of the CRD, which make an update conflict", func() bool {
				var err error
				if check, err = checker.Check(t.Context(), next); err != nil {
					t.Fatal(err)
				}
				return first(check) != releasecheck.ReasonNotDryRun
			})
			if check.Result != c.want || first(check) != releasecheck.ReasonServerRefused {
				t.Fatalf("check: %+v, want %s", check, c.want)
			}
			mustSay(t, check.Reasons[0].Message, w.name, "`"+c.command+"`", "spec.preserveUnknownFields: Invalid value: true")
			mustSay(t, check.Reasons[0].Fix.String(), "`preserveUnknownFields: false`")

			file, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
			if err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedField(file, false, "spec", "preserveUnknownFields"); err != nil {
				t.Fatal(err)
			}
			f, err := checker.ObserveFile(t.Context(), next, file)
			if err != nil {
				t.Fatal(err)
			}
			if !f.Applied.Accepted || releasecheck.For(f).Result == releasecheck.Refused {
				t.Errorf("with false in the file: %+v, %+v, want no refusal", f.Applied, releasecheck.For(f))
			}
		})
	}
}

// TestReleaseMeetsAnotherManager: a user has patched the versions, which Flux owns. The next server-side apply of Flux conflicts, unless it
// forces, and the check says so.
func TestReleaseMeetsAnotherManager(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	applied := w.next(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	})
	body, err := json.Marshal(applied)
	if err != nil {
		t.Fatal(err)
	}
	force := metav1.PatchOptions{FieldManager: "flux", Force: new(true)}
	if _, err := w.crds().Patch(t.Context(), w.name, types.ApplyPatchType, body, force); err != nil {
		t.Fatal(err)
	}
	w.flip()
	next := w.next(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Deprecated = true })
	check, err := newChecker(t, w.config, releasecheck.Options{}).Check(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(check.Reasons, func(f releasecheck.Finding) bool { return f.Reason == releasecheck.ReasonApplyConflicts })
	if check.Result == releasecheck.Refused || i < 0 {
		t.Fatalf("check: %+v, want a note about the conflict", check)
	}
	mustSay(t, check.Reasons[i].Message, w.name, ".spec.versions")
}

// applyAs applies a CRD as the manager does, without force.
func (w *widgets) applyAs(manager string, crd *apiextensionsv1.CustomResourceDefinition) error {
	w.t.Helper()
	crd = crd.DeepCopy()
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	body, err := json.Marshal(crd)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.crds().Patch(w.t.Context(), w.name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager})
	return err
}

// inject writes the CA bundle of the webhook as an injector does.
func (w *widgets) inject(ca []byte) {
	w.t.Helper()
	body := fmt.Sprintf(`{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":%q}}}}}`, base64.StdEncoding.EncodeToString(ca))
	if _, err := w.crds().Patch(w.t.Context(), w.name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "injector"}); err != nil {
		w.t.Fatal(err)
	}
}

// newApplied is newWidgets with a CRD that a server-side apply creates.
func newApplied(t *testing.T, manager string, edit crdEdit) *widgets {
	t.Helper()
	w := &widgets{t: t, plane: shared, config: shared.Config(), group: groupOf(t), plural: "widgets", kind: "Widget"}
	w.name = w.plural + "." + w.group
	t.Cleanup(w.uninstall)
	crd := w.newCRD()
	edit(crd)
	if err := w.applyAs(manager, crd); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.AwaitServed(t.Context(), w.config, w.name); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestReleaseEndsASharedConversion: Flux applies a release without spec.conversion, and an injector has written the CA bundle of the webhook.
// The API server refuses what is left, a conversion without a strategy. The patch of the fix ends that.
func TestReleaseEndsASharedConversion(t *testing.T) {
	t.Parallel()
	w := newApplied(t, "flux", withConversion(func(*apiextensionsv1.CustomResourceConversion) {}))
	w.inject(newEndpoint(t, http.NotFoundHandler()).ca)
	next := w.next(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Conversion = nil })
	checker := newChecker(t, w.config, releasecheck.Options{})
	check, err := checker.Check(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if check.Result != releasecheck.Refused || first(check) != releasecheck.ReasonServerRefused {
		t.Fatalf("check: %+v, want Refused by the API server", check)
	}
	mustSay(t, check.Reasons[0].Message, w.name, "which keeps what injector has in spec.conversion")
	if err := w.applyAs("flux", next); !apierrors.IsInvalid(err) {
		t.Fatalf("the apply of the release: %v, want it invalid", err)
	}
	for _, action := range check.Reasons[0].Fix.Actions() {
		patch := action.(godwit.Patch)
		if patch.Object.Name != w.name || patch.Type != godwit.PatchMerge {
			t.Fatalf("the fix patches %+v", patch)
		}
		if _, err := w.crds().Patch(t.Context(), w.name, types.MergePatchType, []byte(patch.Body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if check, err = checker.Check(t.Context(), next); err != nil || check.Result != releasecheck.Safe {
		t.Errorf("check after the patch: %+v, %v, want Safe", check, err)
	}
	if err := w.applyAs("flux", next); err != nil {
		t.Error(err)
	}
	if c := w.crd().Spec.Conversion; c == nil || c.Strategy != apiextensionsv1.NoneConverter || c.Webhook != nil {
		t.Errorf("the conversion is %+v, want None", c)
	}
}

// preserveUnknownFields makes etcd have the CRD as one of apiextensions.k8s.io/v1beta1.
func (w *widgets) preserveUnknownFields(key string, annotations map[string]string, manager string) {
	w.t.Helper()
	stored, err := w.plane.Etcd().Get(w.t.Context(), key)
	if err != nil || len(stored.Kvs) != 1 {
		w.t.Fatalf("%s in etcd: %v, %v", key, stored, err)
	}
	var crd map[string]any
	if err := json.Unmarshal(stored.Kvs[0].Value, &crd); err != nil {
		w.t.Fatal(err)
	}
	crd["spec"].(map[string]any)["preserveUnknownFields"] = true
	metadata := crd["metadata"].(map[string]any)
	metadata["annotations"] = annotations
	delete(metadata, "managedFields")
	if manager != "" {
		metadata["managedFields"] = []metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apiextensions.k8s.io/v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:scope":{}}}`),
		}}
	}
	text, err := json.Marshal(crd)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.plane.Etcd().Put(w.t.Context(), key, string(text)); err != nil {
		w.t.Fatal(err)
	}
	await(w.t, "the API server to have the CRD of etcd", func() bool {
		now, err := w.crds().Get(w.t.Context(), w.name, metav1.GetOptions{})
		return err == nil && now.Spec.PreserveUnknownFields
	})
}

// TestNewCRD checks the release of a CRD that does not exist.
func TestNewCRD(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason string
		edit   crdEdit
		want   releasecheck.Result
	}{
		{"valid", func(*apiextensionsv1.CustomResourceDefinition) {}, releasecheck.Safe},
		{"two storage versions", withVersions("v1*", "v2*"), releasecheck.Refused},
		{"nothing served", withVersions("v1-*"), releasecheck.Safe},
		{"a name that does not fit", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Plural = "gadgets" }, releasecheck.Refused},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			w := &widgets{t: t, plane: shared, config: shared.Config(), group: groupOf(t), plural: "widgets", kind: "Widget"}
			w.name = w.plural + "." + w.group
			next := w.newCRD()
			tc.edit(next)
			f, err := newChecker(t, w.config, releasecheck.Options{}).Observe(t.Context(), next)
			if err != nil {
				t.Fatal(err)
			}
			check := releasecheck.For(f)
			if check.Result != tc.want || f.DryRun.Accepted == (tc.want == releasecheck.Refused) {
				t.Errorf("check: %+v after the dry run %+v, want %s", check, f.DryRun, tc.want)
			}
			clients, err := clientset.NewForConfig(w.config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = clients.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), next, metav1.CreateOptions{})
			if (err != nil) != (tc.want == releasecheck.Refused) {
				t.Errorf("check = %s, but the API server answers: %v", tc.want, err)
			}
		})
	}
}

func first(c releasecheck.Check) *godwit.Reason {
	i := slices.IndexFunc(c.Reasons, func(r releasecheck.Finding) bool {
		return r.Result != releasecheck.Safe || r.Reason != releasecheck.ReasonRemovedWhileServed
	})
	if i < 0 {
		return nil
	}
	return c.Reasons[i].Reason
}

// next is the live CRD, as the file of the next release has it.
func (w *widgets) next(edit crdEdit) *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	next := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: w.crd().Spec}
	edit(next)
	return next
}

func (w *widgets) release(next *apiextensionsv1.CustomResourceDefinition) error {
	_, err := controlplane.UpdateCRD(w.t.Context(), w.config, w.name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec = next.Spec
	})
	return err
}

// mustBeUnreadable reads and applies each object at each served version.
func (w *widgets) mustBeUnreadable(want bool) {
	w.t.Helper()
	var failures []error
	tried := 0
	for _, v := range w.crd().Spec.Versions {
		if !v.Served {
			continue
		}
		for name := range w.storedNames() {
			tried++
			_, err := w.at(v.Name).Get(w.t.Context(), name, metav1.GetOptions{})
			if err == nil {
				_, err = w.apply("painter", v.Name, name, "green")
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("%s at %s: %w", name, v.Name, err))
			}
		}
	}
	if unreadable := len(failures) > 0 || tried == 0 && len(w.storedNames()) > 0; unreadable != want {
		w.t.Errorf("objects are unreadable: %v, want %v; failures: %v", unreadable, want, failures)
	}
}

// storedNames returns the names of the objects in etcd.
func (w *widgets) storedNames() map[string]bool {
	w.t.Helper()
	names := map[string]bool{}
	for i := range 3 {
		name := fmt.Sprintf("w-%04d", i)
		pair, err := w.plane.Etcd().Get(w.t.Context(), w.key(name))
		if err != nil {
			w.t.Fatal(err)
		}
		if len(pair.Kvs) == 1 {
			names[name] = true
		}
	}
	return names
}

// TestCheckWithoutPermissions: without a permission the check is Unknown, and names
// the permission. With each permission it reports more.
func TestCheckWithoutPermissions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.flip()
	w.fill("v1", 3) // stored at v2, while managedFields name v1
	w.setStoredVersions("v2")
	w.setVersions(version("v1", false, false), version("v2", true, true))
	next := w.next(withVersions("v2*"))
	before := w.crd()
	name, config := w.user()
	steps := []struct {
		grant  permission
		want   releasecheck.Result
		says   *godwit.Reason
		remedy string
	}{
		{want: releasecheck.Unknown, says: decision.ReasonForbidden, remedy: "Verb:get Group:apiextensions.k8s.io Resource:customresourcedefinitions Namespace: Name:" + w.name},
		{readCRD, releasecheck.Unknown, decision.ReasonForbidden, "Verb:list Group:" + w.group + " Resource:widgets "},
		{permission{"list", w.group, w.plural}, releasecheck.Unsafe, releasecheck.ReasonManagedFieldsRemovedVersion, "RunMigration{CRD:" + w.name},
	}
	for _, step := range steps {
		if step.grant.verb != "" {
			w.grant(config, name, step.grant)
		}
		check, err := newChecker(t, config, releasecheck.Options{}).Check(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		if check.Result != step.want || first(check) != step.says || !strings.Contains(kubetest.Words(check.Reasons[0].Fix), step.remedy) {
			t.Errorf("with %+v: %+v, want %s because of %s, with the remedy %s", step.grant, check, step.want, step.says, step.remedy)
		}
	}
	if _, err := newChecker(t, w.config, releasecheck.Options{}).Check(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if after := w.crd(); after.ResourceVersion != before.ResourceVersion {
		t.Error("a check has changed the CRD")
	}
}

// TestCheckOfUnreadableObjects: without the conversion webhook the check can't read
// the objects, and is Unknown.
func TestCheckOfUnreadableObjects(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	lives["migrated"](w)
	down := w.next(withVersions("v1", "v2-*"))
	withConversion(func(*apiextensionsv1.CustomResourceConversion) {})(down)
	if err := w.release(down); err != nil {
		t.Fatal(err)
	}
	check, err := newChecker(t, w.config, releasecheck.Options{}).Check(t.Context(), w.next(withVersions("v2*")))
	if err != nil {
		t.Fatal(err)
	}
	if check.Result != releasecheck.Unknown || first(check) != releasecheck.ReasonObjectsUnread {
		t.Errorf("check: %+v, want Unknown because the objects can't be read", check)
	}
}

func newChecker(t *testing.T, config *rest.Config, o releasecheck.Options) *releasecheck.Checker {
	t.Helper()
	c, err := releasecheck.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
