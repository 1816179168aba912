package crdmigrator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// entry makes an entry of managedFields.
func (w *widgets) entry(manager string, operation metav1.ManagedFieldsOperationType, version, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: w.group + "/" + version,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// owned returns the managedFields of an object as "manager operation version fields".
func (w *widgets) owned(name string) []string {
	w.t.Helper()
	o, err := w.at("v2").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var owned []string
	for i, e := range w.entries(name) {
		owned = append(owned, e+" "+o.GetManagedFields()[i].FieldsV1.GetRawString())
	}
	return owned
}

// alterStored changes an object in etcd. The API server would rewrite managedFields
// as an older server or a backup may have left them.
func (w *widgets) alterStored(name string, alter func(*unstructured.Unstructured)) {
	w.t.Helper()
	pair, err := w.plane.Etcd().Get(w.t.Context(), w.key(name))
	if err != nil || len(pair.Kvs) != 1 {
		w.t.Fatalf("%s in etcd: %v, %v", name, pair, err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(pair.Kvs[0].Value, &o.Object); err != nil {
		w.t.Fatal(err)
	}
	alter(o)
	altered, err := json.Marshal(o.Object)
	if err != nil {
		w.t.Fatal(err)
	}
	unmoved := clientv3.Compare(clientv3.ModRevision(w.key(name)), "=", pair.Kvs[0].ModRevision)
	done, err := w.plane.Etcd().Txn(w.t.Context()).If(unmoved).Then(clientv3.OpPut(w.key(name), string(altered))).Commit()
	if err != nil || !done.Succeeded {
		w.t.Fatalf("alter %s in etcd: %+v, %v", name, done, err)
	}
}

// own creates an object with the given managedFields.
func (w *widgets) own(name string, entries ...metav1.ManagedFieldsEntry) {
	w.t.Helper()
	w.create(w.config, "v2", name)
	w.alterStored(name, func(o *unstructured.Unstructured) { o.SetManagedFields(entries) })
}

// write is a merge patch of an object, or of its subresource.
func (w *widgets) write(manager, version, name, body string, subresource ...string) {
	w.t.Helper()
	_, err := w.at(version).Patch(w.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}, subresource...)
	if err != nil {
		w.t.Fatal(err)
	}
}

// removeV1 removes v1 as an operator's release does, when no object is stored at it.
func (w *widgets) removeV1(m *storageversion.Migrator) {
	w.t.Helper()
	if report := w.mustMigrate(m); !report.Trimmed {
		w.t.Fatalf("v1 can't be removed: %+v", report)
	}
	w.setVersions(version("v2", true, true))
}

func (w *widgets) mustClean(m *storageversion.Migrator, n int64) {
	w.t.Helper()
	if report, want := w.mustMigrate(m).ManagedFields, (godwit.Counts{Migrated: n}); report.Counts != want {
		w.t.Errorf("cleanup: %+v, want %+v", report, want)
	}
}

// mustBeOwned ignores the order, which the server sets by time.
func (w *widgets) mustBeOwned(name string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(w.owned(name)))); diff != "" {
		w.t.Errorf("managedFields of %s (-want +got):\n%s", name, diff)
	}
}

const (
	seeded       = ` {"f:metadata":{"f:name":{}}}`
	appliedColor = `{"f:spec":{".":{},"f:color":{}}}`
)

// TestNextApplyReplacesTheSeedEntry: after the cleanup, an applier is the only manager,
// meets no conflict, and can remove a field that it no longer applies. For an object
// without entries, the server would make up an owner of all its fields.
func TestNextApplyReplacesTheSeedEntry(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	for _, name := range []string{"own", "other"} {
		if _, err := w.apply("painter", "v1", name, "red"); err != nil {
			t.Fatal(err)
		}
	}
	w.create(w.config, "v1", "reset")
	w.flip()
	w.removeV1(m)
	w.write("reset", "v2", "reset", `{"metadata":{"managedFields":[{}]}}`)
	w.mustClean(m, 2)
	w.mustBeOwned("own", "painter Apply v2"+seeded)

	for name, manager := range map[string]string{"own": "painter", "other": "decorator", "reset": "painter"} {
		if _, err := w.applySpec(manager, "v2", name, `{"color":"green"}`, false); (err != nil) != (name == "reset") || (err != nil && !apierrors.IsConflict(err)) {
			t.Errorf("apply to %s without force: %v, want a conflict only with the owner that the server makes up", name, err)
		}
	}
	w.mustBeOwned("own", "painter Apply v2 "+appliedColor)
	w.mustBeOwned("other", "painter Apply v2"+seeded, "decorator Apply v2 "+appliedColor)

	if _, err := w.applySpec("painter", "v2", "own", `{"of":"own"}`, false); err != nil {
		t.Fatal(err)
	}
	w.mustBeOwned("own", `painter Apply v2 {"f:spec":{".":{},"f:of":{}}}`)
	if spec := w.specs("v2")["own"]; !cmp.Equal(spec, map[string]any{"of": "own"}) {
		t.Errorf("spec = %v after an apply without color, want no color", spec)
	}
}

// TestEntriesOfSubresources: entries of /status are cleaned by a write of the object,
// because a write of /status can't. Entries of a served version stay.
func TestEntriesOfSubresources(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	for _, name := range []string{"both", "only"} {
		w.create(w.config, "v1", name)
		w.write("prober", "v1", name, `{"status":{"phase":"Up"}}`, "status")
	}
	w.flip()
	w.write("counter", "v2", "both", `{"status":{"replicas":1}}`, "status")
	w.write("brush", "v2", "only", `{"spec":{"color":"red","of":"all"}}`)
	w.removeV1(m)
	status := "counter Update v2 status " + `{"f:status":{"f:replicas":{}}}`
	before := w.owned("both")
	if len(before) != 3 || !slices.Contains(before, status) {
		t.Fatalf("managedFields before the cleanup = %q, want three entries", before)
	}

	drop := []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
	if _, err := w.at("v2").Patch(t.Context(), "both", types.JSONPatchType, drop, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	w.mustBeOwned("both", before...)

	w.mustClean(m, 2)
	w.mustBeOwned("both", status)
	w.mustBeOwned("only", `brush Update v2 {"f:spec":{"f:color":{},"f:of":{}}}`)
}

// TestDuplicateEntries: on any write, the server keeps the last of the entries with the
// same manager. An applier is the same manager at every version, so that the cleanup
// must keep its readable entry, not the unreadable one.
func TestDuplicateEntries(t *testing.T) {
	t.Parallel()
	const color, of = `{"f:spec":{"f:color":{}}}`, `{"f:spec":{"f:of":{}}}`
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	w.flip()
	w.removeV1(m)
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    []string
	}{
		"stay": {
			"the server merges the remaining entries, as on any write",
			[]metav1.ManagedFieldsEntry{w.entry("painter", apply, "v1", color), w.entry("brush", update, "v2", color), w.entry("brush", update, "v2", of)},
			[]string{"brush Update v2 " + of},
		},
		"go": {
			"none of them may stay",
			[]metav1.ManagedFieldsEntry{w.entry("brush", update, "v1", color), w.entry("brush", update, "v1", of), w.entry("painter", apply, "v2", color)},
			[]string{"painter Apply v2 " + color},
		},
		"seed": {
			"one seed for all of them",
			[]metav1.ManagedFieldsEntry{w.entry("brush", update, "v1", color), w.entry("brush", update, "v1", of)},
			[]string{"brush Update v2" + seeded},
		},
		"applier": {
			"the last is the stale one, and the server would keep it",
			[]metav1.ManagedFieldsEntry{w.entry("painter", apply, "v2", color), w.entry("painter", apply, "v1", of)},
			[]string{"painter Apply v2 " + color},
		},
	}
	for name, tc := range cases {
		w.own(name, tc.entries...)
		if got := len(w.entries(name)); got != len(tc.entries) {
			t.Fatalf("%s: %d entries are stored, want %d", name, got, len(tc.entries))
		}
	}
	w.mustClean(m, int64(len(cases)))
	for name, tc := range cases {
		t.Log(tc.reason)
		w.mustBeOwned(name, tc.want...)
	}
	w.mustClean(m, 0)
}

// TestManyManagers: the server keeps ten updaters and merges older ones into one per
// version. The cleanup removes merged and single entries of v1, and no manager at v2
// loses a field.
func TestManyManagers(t *testing.T) {
	t.Parallel()
	const many = 16
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	w.create(w.config, "v1", "updated")
	for i := range many {
		field := fmt.Sprintf("f%02d", i)
		w.write("old-"+field, "v1", "updated", `{"spec":{"`+field+`":1}}`)
		if _, err := w.applySpec("old-"+field, "v1", "applied", `{"`+field+`":1}`, true); err != nil {
			t.Fatal(err)
		}
	}
	w.flip()
	for i := range 4 {
		w.write(fmt.Sprintf("new-%d", i), "v2", "updated", fmt.Sprintf(`{"spec":{"f%02d":2}}`, i))
	}
	if _, err := w.applySpec("painter", "v2", "applied", `{"color":"red"}`, true); err != nil {
		t.Fatal(err)
	}
	var crowd []metav1.ManagedFieldsEntry
	for i := range many {
		fields := fmt.Sprintf(`{"f:spec":{"f:f%02d":{}}}`, i)
		crowd = append(crowd, w.entry(fmt.Sprintf("old-%02d", i), metav1.ManagedFieldsOperationUpdate, "v1", fields),
			w.entry(fmt.Sprintf("new-%02d", i), metav1.ManagedFieldsOperationUpdate, "v2", fields))
	}
	w.removeV1(m)
	w.own("crowd", crowd...)

	updated := w.owned("updated")
	if !slices.ContainsFunc(updated, func(e string) bool { return strings.HasPrefix(e, "ancient-changes Update v1 ") }) {
		t.Fatalf("managedFields = %q, want a merged entry at v1", updated)
	}
	stale := func(e string) bool { return strings.Contains(e, " v1 ") }
	w.mustClean(m, 3)
	w.mustBeOwned("updated", slices.DeleteFunc(updated, stale)...)
	w.mustBeOwned("applied", "painter Apply v2 "+appliedColor)
	left := w.owned("crowd")
	if len(left) != 10 || slices.ContainsFunc(left, stale) || !strings.HasPrefix(left[0], "ancient-changes Update v2 ") {
		t.Errorf("of %d managers at each version %q are left, want ten at v2, one of them for the oldest", many, left)
	}
	for i := range many {
		if field := fmt.Sprintf(`"f:f%02d":{}`, i); strings.Count(strings.Join(left, "\n"), field) != 1 {
			t.Errorf("%s has no single owner in %q", field, left)
		}
	}
}
