package crdmigrator_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// TestReconcile_NoopWhenClean: the reconciler only reads a CRD that never had another
// storage version.
func TestReconcile_NoopWhenClean(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.setVersions(version("v1", true, true), version("v2", true, false))
	w.optIn()
	before := w.crd().ResourceVersion
	o := w.selecting(nil)
	objects := func(r string) bool { return strings.Contains(r, "/apis/"+w.group+"/") }
	o.mustReconcile("a clean CRD", reconcile.Result{})
	looked := len(o.requests.matching(objects))
	o.mustReconcile("the same, once more", reconcile.Result{})
	if again := len(o.requests.matching(objects)) - looked; again != 0 {
		t.Errorf("%d requests read managedFields that were clean before, want none", again)
	}
	o.mustWriteNothing("the CRD is clean")
	if after := w.crd().ResourceVersion; after != before {
		t.Errorf("the CRD's resourceVersion moved from %s to %s", before, after)
	}
	w.mustBeStored("afterwards", map[string]int{"v1": 5})
}

func TestReconcile_HappyPathTrimsStoredVersions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 30)
	w.flip()
	w.optIn()
	said := &recorder{}
	o := newOperator(w, func(o *operator) {
		o.migrator.Selector, o.migrator.Recorder = crdmigrator.Selector{Group: w.group}, said
	})
	o.start()
	o.awaitAnnotation(crdmigrator.ObservedGenerationAnnotation, strconv.FormatInt(w.crd().Generation, 10))
	w.mustBeStored("after the reconciliation", map[string]int{"v2": 30})
	w.mustHaveStoredVersions("after the reconciliation", "v2")
	if n := o.updates(); n != 30 {
		t.Errorf("%d updates for 30 objects", n)
	}
	want := []recordedEvent{{corev1.EventTypeNormal, crdmigrator.EventSucceeded, "every object is stored at v2", w.name}}
	if got := said.all(); !slices.Equal(got, want) {
		t.Errorf("events: %+v, want %+v", got, want)
	}
}

// TestReconcile_ReencodesCRsStoredAtPriorVersion: an update of an unchanged object is a
// write only where etcd has it at another version.
func TestReconcile_ReencodesCRsStoredAtPriorVersion(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	w.create(w.config, "v2", "current")
	w.optIn()
	w.mustBeStored("before", map[string]int{"v1": 5, "v2": 1})
	o := w.selecting(nil)

	before := w.resourceVersions()
	o.mustReconcile("the first pass", reconcile.Result{})
	first := w.resourceVersions()
	w.mustBeStored("after the first pass", map[string]int{"v2": 6})
	for name := range before {
		if moved, want := first[name] != before[name], name != "current"; moved != want {
			t.Errorf("first pass: the resourceVersion of %s moved: %v, want %v", name, moved, want)
		}
	}

	w.setStoredVersions("v1", "v2") // as a restored backup has them
	o.mustReconcile("the second pass", reconcile.Result{})
	if diff := cmp.Diff(first, w.resourceVersions()); diff != "" {
		t.Errorf("second pass: resourceVersions moved (-before +after):\n%s", diff)
	}
	if n := o.updates(); n != 12 {
		t.Errorf("%d updates in two passes over 6 objects, want 12: a trim is no evidence for the next pass", n)
	}
	w.mustHaveStoredVersions("after the second pass", "v2")
}

func (w *widgets) resourceVersions() map[string]string {
	w.t.Helper()
	list, err := w.at("v2").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	versions := map[string]string{}
	for _, o := range list.Items {
		versions[o.GetName()] = o.GetResourceVersion()
	}
	return versions
}

// TestReconcile_PartialFailureLeavesStoredVersionsUntouched: a failed object is an error,
// so that the queue backs off, and the next pass writes only that object.
func TestReconcile_PartialFailureLeavesStoredVersionsUntouched(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	w.optIn()
	h := w.newWebhook(deny("w-0003"))
	w.awaitRefused("w-0003", denied)
	o := w.selecting(nil)

	result, err := o.reconcile(t.Context())
	if err == nil || !strings.Contains(err.Error(), "w-0003") || result != (reconcile.Result{}) {
		t.Errorf("with an object denied: %+v, %v, want an error that names it", result, err)
	}
	w.mustBeStored("with an object denied", map[string]int{"v1": 1, "v2": 9})
	w.mustHaveStoredVersions("with an object denied", "v1,v2")

	h.setDecide(allow)
	sent := o.updates()
	o.mustReconcile("once it is allowed", reconcile.Result{})
	w.mustBeStored("once it is allowed", map[string]int{"v2": 10})
	w.mustHaveStoredVersions("once it is allowed", "v2")
	if n := o.updates() - sent; n != 1 {
		t.Errorf("the second pass sent %d updates, want that of the one object", n)
	}
}

// TestReconcile_ConflictDuringRestoreLeavesStoredVersionsUntouched: an object that another
// client writes between our read and our write is left to the next pass, and the other
// client's write stays.
func TestReconcile_ConflictDuringRestoreLeavesStoredVersionsUntouched(t *testing.T) {
	t.Parallel()
	const object = "w-0003"
	for name, test := range map[string]struct {
		reason    string
		conflicts func(w *widgets, on func() bool) between
		stored    map[string]int
		left      int // updates that the next pass needs
	}{
		"writer": {
			reason:    "another writer stores the object at the new version",
			conflicts: func(w *widgets, on func() bool) between { return w.racing(object, on) },
			stored:    map[string]int{"v2": 10}, left: 0},
		"answer": {
			reason:    "a conflict without a writer proves nothing",
			conflicts: func(w *widgets, on func() bool) between { return w.conflicting(object, on) },
			stored:    map[string]int{"v1": 1, "v2": 9}, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 10)
			w.flip()
			w.optIn()
			var over atomic.Bool
			o := w.selecting(nil, test.conflicts(w, func() bool { return !over.Load() }))

			o.mustReconcile("with a conflict", reconcile.Result{RequeueAfter: 30 * time.Second})
			if n := o.updates(object); n != 1 {
				t.Errorf("%d updates of the object in one pass, want no retry", n)
			}
			w.mustBeStored("with a conflict", test.stored)
			w.mustHaveStoredVersions("with a conflict", "v1,v2")

			over.Store(true)
			sent, before := o.updates(), w.specs("v2")
			o.mustReconcile("the next pass", reconcile.Result{})
			if n := o.updates() - sent; n != test.left {
				t.Errorf("the next pass sent %d updates, want %d: %s", n, test.left, test.reason)
			}
			w.mustBeStored("after the next pass", map[string]int{"v2": 10})
			w.mustHaveStoredVersions("after the next pass", "v2")
			if diff := cmp.Diff(before, w.specs("v2")); diff != "" {
				t.Errorf("a write was lost (-before +after):\n%s", diff)
			}
		})
	}
}

// racing writes an object just before our update of it arrives.
func (w *widgets) racing(name string, on func() bool) between {
	theirs := w.at("v2")
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if object, ok := w.updated(r); ok && object == name && on() {
				_, err := theirs.Patch(r.Context(), name, types.MergePatchType, []byte(`{"spec":{"color":"red"}}`), metav1.PatchOptions{})
				if err != nil {
					w.t.Error(err)
				}
			}
			return next.RoundTrip(r)
		})
	}
}

// TestReconcile_SkipsForeignCRDs: neither the label nor old storedVersions make a
// CRD of another group ours.
func TestReconcile_SkipsForeignCRDs(t *testing.T) {
	t.Parallel()
	theirs, ours := newWidgets(t, shared), newWidgets(t, shared)
	for _, w := range []*widgets{theirs, ours} {
		w.fill("v1", 5)
		w.flip()
		w.optIn()
	}
	_, user := ours.user(slices.Concat(ours.selectorPermissions(), theirs.selectorPermissions())...)
	o := ours.selectingAs(user, nil)
	o.start()
	o.awaitAnnotation(crdmigrator.ObservedGenerationAnnotation, strconv.FormatInt(ours.crd().Generation, 10))
	ours.mustHaveStoredVersions("in the group", "v2")
	if named := o.requests.matching(func(r string) bool { return strings.Contains(r, theirs.group) }); len(named) > 0 {
		t.Errorf("requests about another group: %q", named)
	}

	_, err := o.migrator.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: theirs.name}})
	if err != nil {
		t.Fatal(err)
	}
	theirs.mustBeStored("in another group", map[string]int{"v1": 5})
	theirs.mustHaveStoredVersions("in another group", "v1,v2")
	if written := slices.DeleteFunc(o.writes(), func(r string) bool { return !strings.Contains(r, theirs.group) }); len(written) > 0 {
		t.Errorf("writes to another group = %q, want none", written)
	}
}

func TestReconcile_SkipsUnlabelledToolhiveCRD(t *testing.T) {
	t.Parallel()
	for reason, value := range map[string]string{"no label": "", "another value than true": "false"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newToolHive(t)
			w.fill("v1", 5)
			w.flip()
			w.label(toolHiveLabel, value)
			before := w.crd().ResourceVersion
			o := w.selecting(func(o *operator) { o.migrator.Selector = toolHiveSelector })
			o.mustReconcile(reason, reconcile.Result{})
			o.mustWriteNothing(reason)
			if after := w.crd().ResourceVersion; after != before {
				t.Errorf("the CRD's resourceVersion moved from %s to %s", before, after)
			}
			w.mustBeStored(reason, map[string]int{"v1": 5})
		})
	}
}

// TestReconcile_Pagination: memory is bounded by a page, and no page is missed.
func TestReconcile_Pagination(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason   string
		pageSize int64
		objects  int
		limit    string
		pages    int
	}{
		"default":    {reason: "a page has 100 objects by default, and the first has 50", objects: 250, limit: "100", pages: 3},
		"configured": {reason: "a page has PageSize objects", pageSize: 15, objects: 60, limit: "15", pages: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", test.objects)
			w.flip()
			w.optIn()
			o := w.selecting(func(o *operator) { o.migrator.PageSize = test.pageSize })
			o.mustReconcile(test.reason, reconcile.Result{})

			list := fmt.Sprintf("GET /apis/%s/v2/%s?", w.group, w.plural)
			lists := o.requests.matching(func(r string) bool { return strings.HasPrefix(r, list) && !strings.Contains(r+"&", "limit=1&") })
			follow := 0
			for _, r := range lists {
				if first := !strings.Contains(r, "continue="); !strings.HasSuffix(r, "limit="+test.limit) && !(first && strings.HasSuffix(r, "limit=50")) {
					t.Errorf("%s: but the reconciler sent %s", test.reason, r)
				}
				if strings.Contains(r, "continue=") {
					follow++
				}
			}
			if len(lists) != test.pages || follow != test.pages-1 {
				t.Errorf("%d lists, %d of them with a token, want %d pages: %q", len(lists), follow, test.pages, lists)
			}
			if n := o.updates(); n != test.objects {
				t.Errorf("%d updates for %d objects", n, test.objects)
			}
			w.mustBeStored("after all pages", map[string]int{"v2": test.objects})
			w.mustHaveStoredVersions("after all pages", "v2")
		})
	}
}
