package crdmigrator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// apply is a server-side apply of an object's color.
func (w *widgets) apply(manager, version, name, color string) (*unstructured.Unstructured, error) {
	return w.applySpec(manager, version, name, fmt.Sprintf(`{"color":%q}`, color), true)
}

func (w *widgets) applySpec(manager, version, name, spec string, force bool) (*unstructured.Unstructured, error) {
	body := fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"Widget","metadata":{"name":%q},"spec":%s}`, w.group, version, name, spec)
	return w.at(version).Patch(w.t.Context(), name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
}

// entries describes managedFields, one "manager operation version" each.
func (w *widgets) entries(name string) []string {
	w.t.Helper()
	o, err := w.at("v2").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var entries []string
	for _, e := range o.GetManagedFields() {
		entry := fmt.Sprintf("%s %s %s", e.Manager, e.Operation, strings.TrimPrefix(e.APIVersion, w.group+"/"))
		if e.Subresource != "" {
			entry += " " + e.Subresource
		}
		entries = append(entries, entry)
	}
	return entries
}

// TestManagedFieldsOfARemovedVersion: objects that were applied at v1 can't be
// applied any more once v1 is gone, until their managedFields are cleaned.
func TestManagedFieldsOfARemovedVersion(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})
	for _, name := range []string{"applied", "mixed", "written"} {
		if name == "written" {
			w.create(w.config, "v1", name)
			continue
		}
		if _, err := w.apply("painter", "v1", name, "red"); err != nil {
			t.Fatal(err)
		}
	}
	status := []byte(`{"status":{"phase":"Up"}}`)
	if _, err := w.at("v1").Patch(t.Context(), "mixed", types.MergePatchType, status, metav1.PatchOptions{FieldManager: "prober"}, "status"); err != nil {
		t.Fatal(err)
	}
	w.flip()
	if _, err := w.apply("decorator", "v2", "mixed", "red"); err != nil {
		t.Fatal(err)
	}

	// While v1 is served, its entries stay.
	if report := w.mustMigrate(m); report.ManagedFields.Counts.Total() != 0 || !report.Trimmed {
		t.Errorf("a run while v1 is served cleans %+v, want nothing, and trims", report.ManagedFields)
	}
	w.setVersions(version("v2", true, true))
	if _, err := w.apply("painter", "v2", "applied", "green"); !apierrors.IsInvalid(err) && err == nil {
		t.Error("an apply over entries of a removed version succeeded, want an error before the cleanup")
	}

	if got := w.scanned(); got != decision.ManagedFieldsStale {
		t.Errorf("managedFields by a scan = %s, want Stale", got)
	}
	report := w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: 3}); report.ManagedFields.Counts != want {
		t.Errorf("cleanup: %+v, want %+v", report.ManagedFields, want)
	}
	for name, want := range map[string][]string{
		"applied": {"painter Apply v2"},   // nothing was left: seeded in the first's name
		"mixed":   {"decorator Apply v2"}, // the entry of the subresource went too
	} {
		if got := w.entries(name); !slices.Equal(got, want) {
			t.Errorf("managedFields of %s are %q, want %q", name, got, want)
		}
	}
	if got := w.entries("written"); len(got) != 1 || !strings.HasSuffix(got[0], "Update v2") {
		t.Errorf("managedFields of a written object are %q, want one seeding entry of its manager", got)
	}

	if got := w.scanned(); got != decision.ManagedFieldsClean {
		t.Errorf("managedFields by a scan after the cleanup = %s, want Clean", got)
	}

	// A later apply by the same manager replaces the seed.
	if _, err := w.apply("painter", "v2", "applied", "green"); err != nil {
		t.Fatal(err)
	}
	if got, want := w.entries("applied"), []string{"painter Apply v2"}; !slices.Equal(got, want) {
		t.Errorf("after the next apply managedFields are %q, want %q", got, want)
	}
	if report := w.mustMigrate(m); report.ManagedFields.Counts.Total() != 0 {
		t.Errorf("a second run cleans %+v, want nothing", report.ManagedFields)
	}
}

// scanned is the state of managedFields in a plan that reads all objects.
func (w *widgets) scanned() decision.ManagedFields {
	w.t.Helper()
	plan, err := newMigrator(w.t, w.config, storageversion.Options{Scan: true}).Plan(w.t.Context(), w.name)
	if err != nil {
		w.t.Fatal(err)
	}
	if (plan.ManagedFields == decision.ManagedFieldsStale) != (plan.State == decision.Ready) {
		w.t.Errorf("plan is %s although managedFields are %s", plan.State, plan.ManagedFields)
	}
	return plan.ManagedFields
}

// TestOneWriteRewritesAndCleans: an object that needs both is written once.
func TestOneWriteRewritesAndCleans(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	w.setVersions(version("v1", false, false), version("v2", true, true)) // unserved, still stored
	report := w.mustMigrate(newMigrator(t, w.config, storageversion.Options{Policy: quickSettle}))
	want := godwit.Counts{Migrated: 20}
	if report.Storage.Counts != want || report.ManagedFields.Counts != want || !report.Trimmed {
		t.Errorf("run: %+v, want 20 migrated and cleaned, and trimmed", report)
	}
	w.mustBeStored("after the run", map[string]int{"v2": 20})
	w.mustBeWrittenOnce()
}
