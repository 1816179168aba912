package crdmigrator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/test/controlplane"
)

type crdEdit = func(*apiextensionsv1.CustomResourceDefinition)

// withVersions has v1 and so on; * stores, - is not served.
func withVersions(flags ...string) crdEdit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = nil
		for _, f := range flags {
			crd.Spec.Versions = append(crd.Spec.Versions,
				version(strings.TrimRight(f, "*-"), !strings.Contains(f, "-"), strings.Contains(f, "*")))
		}
	}
}

// withConversion gives the CRD a complete webhook, and edits that.
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

// The lives that a CRD may have had before the next release.
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
		w.mustMigrate(w.quickMigrator(crdmigrator.Options{}))
	},
	"migrated, no object": func(w *widgets) {
		w.flip()
		w.mustMigrate(w.quickMigrator(crdmigrator.Options{}))
	},
	"migrated, unserved": func(w *widgets) {
		w.fill("v1", 3)
		w.flip()
		w.mustMigrate(w.quickMigrator(crdmigrator.Options{}))
		w.setVersions(version("v1", false, false), version("v2", true, true))
	},
	"migrated, unserved, cleaned": func(w *widgets) {
		w.fill("v1", 3)
		w.flip()
		w.setVersions(version("v1", false, false), version("v2", true, true))
		w.mustMigrate(w.quickMigrator(crdmigrator.Options{}))
	},
	"version lost": func(w *widgets) { w.fill("v1", 3); w.flip(); w.setStoredVersions("v0", "v1", "v2") },
	"storedVersions without the storage version": func(w *widgets) {
		w.setVersions(version("v1", true, true), version("v2", true, false))
		w.fill("v2", 3) // stored at v1, while managedFields name v2
		w.setStoredVersions("v2")
	},
	"storedVersions lie": func(w *widgets) {
		w.setVersions(version("v1", true, true), version("v2", true, false))
		w.fill("v2", 3)
		w.flip()
		w.setStoredVersions("v2")
	},
}

// TestNextRelease gives each next release to a CRD with a life, compares
// what the check says with the dry run, then releases it for real, and compares
// with what became of the objects.
func TestNextRelease(t *testing.T) {
	t.Parallel()
	refused, unsafe, safe := releasecheck.Refused, releasecheck.Unsafe, releasecheck.Safe
	cases := []struct {
		reason  string
		life    string
		next    crdEdit
		verdict releasecheck.Verdict
		says    string // the weightiest reason; none if empty
	}{
		{"nothing changes", "v1 alone", withVersions("v1*"), safe, ""},
		{"a version is added", "v1 alone", withVersions("v1*", "v2"), safe, ""},
		{"the storage version flips", "both served", withVersions("v1", "v2*"), safe, ""},
		{"a new version takes over at once", "v1 alone", withVersions("v2*"), refused, releasecheck.ReasonStoredVersionRemoved},
		{"it flips and removes at once", "both served", withVersions("v2*"), refused, releasecheck.ReasonStoredVersionRemoved},
		{"it removes before the migration", "flipped", withVersions("v2*"), refused, releasecheck.ReasonStoredVersionRemoved},
		{"it removes after the migration", "migrated", withVersions("v2*"), unsafe, releasecheck.ReasonManagedFieldsRemovedVersion},
		{"it unserves after the migration", "migrated", withVersions("v1-", "v2*"), safe, ""},
		{"it removes without a cleanup", "migrated, unserved", withVersions("v2*"), unsafe, releasecheck.ReasonManagedFieldsRemovedVersion},
		{"it removes after the cleanup", "migrated, unserved, cleaned", withVersions("v2*"), safe, releasecheck.ReasonStoredVersionsTrusted},
		{"it removes what nobody used", "migrated, no object", withVersions("v2*"), safe, ""},
		{"a stored version was lost before", "version lost", withVersions("v1", "v2*"), refused, releasecheck.ReasonStoredVersionRemoved},
		{"the lost version comes back", "version lost", withVersions("v0-", "v1", "v2*"), safe, ""},
		{"it removes what only etcd knows of", "storedVersions without the storage version", withVersions("v2*"), unsafe, releasecheck.ReasonStoredAtRemovedVersion},
		{"nothing is served", "flipped", withVersions("v1-", "v2-*"), unsafe, releasecheck.ReasonNoServedVersion},
		{"the storage version is not served", "flipped", withVersions("v1", "v2-*"), safe, releasecheck.ReasonUnservedStorageVersion},
		{"no storage version", "flipped", withVersions("v1", "v2"), refused, crdmigrator.ReasonNoStorageVersion},
		{"no version", "flipped", withVersions(), refused, crdmigrator.ReasonNoStorageVersion},
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
			if check.Verdict != tc.verdict || first(check) != tc.says {
				t.Errorf("check: %+v, want %s because of %q", check, tc.verdict, tc.says)
			}
			if dryRun.Accepted == (check.Verdict == refused) {
				t.Errorf("the verdict is %s, and the dry run %+v", check.Verdict, dryRun)
			}
			if err := w.release(next); (err != nil) != (check.Verdict == refused) {
				t.Errorf("the verdict is %s, and the API server says: %v", check.Verdict, err)
			} else if err == nil {
				w.mustBeStranded(check.Verdict == unsafe)
			}
		})
	}
}

// TestNoAPITellsALieOfStoredVersions: where somebody trimmed the list and
// migrated nothing, the API server has forgotten. The check says what it trusts.
func TestNoAPITellsALieOfStoredVersions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	lives["storedVersions lie"](w)
	next := w.next(withVersions("v2*"))
	check, err := newChecker(t, w.config, releasecheck.Options{}).Check(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(check.Reasons, func(r releasecheck.Finding) bool { return r.Reason == releasecheck.ReasonStoredVersionsTrusted })
	if check.Verdict != releasecheck.Safe || i < 0 || !strings.Contains(check.Reasons[i].Remedy, "godwit crd verify "+w.name) {
		t.Errorf("check: %+v, want it to point to the proof from etcd", check)
	}
	if err := w.release(next); err != nil {
		t.Fatal(err)
	}
	w.mustBeStranded(true)
}

// TestTheServerKnowsMoreThanVersions: what is no matter of versions is the dry
// run's to find.
func TestTheServerKnowsMoreThanVersions(t *testing.T) {
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
	if check.Verdict != releasecheck.Refused || first(check) != releasecheck.ReasonServerRefused {
		t.Errorf("check: %+v, want it refused by the server", check)
	}
	if w.release(next) == nil {
		t.Error("the API server takes it")
	}
}

// TestNewCRD: what does not exist is created, or not.
func TestNewCRD(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason  string
		edit    crdEdit
		verdict releasecheck.Verdict
	}{
		{"a good one", func(*apiextensionsv1.CustomResourceDefinition) {}, releasecheck.Safe},
		{"two storage versions", withVersions("v1*", "v2*"), releasecheck.Refused},
		{"nothing served", withVersions("v1-*"), releasecheck.Safe},
		{"not its name", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Plural = "gadgets" }, releasecheck.Refused},
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
			if check.Verdict != tc.verdict || f.DryRun.Accepted == (tc.verdict == releasecheck.Refused) {
				t.Errorf("check: %+v after the dry run %+v, want %s", check, f.DryRun, tc.verdict)
			}
			clients, err := clientset.NewForConfig(w.config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = clients.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), next, metav1.CreateOptions{})
			if (err != nil) != (tc.verdict == releasecheck.Refused) {
				t.Errorf("the verdict is %s, and the API server says: %v", tc.verdict, err)
			}
		})
	}
}

func first(c releasecheck.Check) string {
	i := slices.IndexFunc(c.Reasons, func(r releasecheck.Finding) bool {
		return r.Verdict != releasecheck.Safe || r.Reason != releasecheck.ReasonRemovedWhileServed
	})
	if i < 0 {
		return ""
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

// mustBeStranded reads and applies each object at each served version.
func (w *widgets) mustBeStranded(want bool) {
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
	if stranded := len(failures) > 0 || tried == 0 && len(w.storedNames()) > 0; stranded != want {
		w.t.Errorf("objects are stranded: %v, want %v: %v", stranded, want, failures)
	}
}

// storedNames are the objects that etcd holds.
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

// TestCheckWithoutRights: what may not be read is unknown, and names the grant;
// with each grant more is known.
func TestCheckWithoutRights(t *testing.T) {
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
		grant   right
		verdict releasecheck.Verdict
		says    string
		remedy  string
	}{
		{verdict: releasecheck.Unknown, says: crdmigrator.ReasonForbidden, remedy: "--verb=get --resource=customresourcedefinitions.apiextensions.k8s.io --resource-name=" + w.name},
		{readCRD, releasecheck.Unknown, crdmigrator.ReasonForbidden, "--verb=list --resource=widgets." + w.group},
		{right{"list", w.group, w.plural}, releasecheck.Unsafe, releasecheck.ReasonManagedFieldsRemovedVersion, "godwit crd run " + w.name},
	}
	for _, step := range steps {
		if step.grant.verb != "" {
			w.grant(config, name, step.grant)
		}
		check, err := newChecker(t, config, releasecheck.Options{}).Check(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		if check.Verdict != step.verdict || first(check) != step.says || !strings.Contains(check.Reasons[0].Remedy, step.remedy) {
			t.Errorf("with %+v: %+v, want %s because of %s, with the remedy %s", step.grant, check, step.verdict, step.says, step.remedy)
		}
	}
	if _, err := newChecker(t, w.config, releasecheck.Options{}).Check(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if after := w.crd(); after.ResourceVersion != before.ResourceVersion {
		t.Error("a check has changed the CRD")
	}
}

// TestCheckOfUnreadableObjects: a conversion webhook that is down keeps objects
// from being read, and thus the verdict.
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
	if check.Verdict != releasecheck.Unknown || first(check) != releasecheck.ReasonObjectsUnread {
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
