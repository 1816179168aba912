package crdmigrator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// Six pages of more objects than are written at once, so that a page can't begin before
// objects of the former page are done.
const (
	midPassPage    = 20
	midPassObjects = 6 * midPassPage
)

// TestReconcileReadsTheLabelLive: the label was removed after the event.
func TestReconcileReadsTheLabelLive(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	w.optIn()
	o := w.selecting(nil)
	w.label(crdmigrator.AutoMigrateLabel, "")
	o.mustReconcile("the label is gone", reconcile.Result{})
	o.mustWriteNothing("the label is gone")
	w.mustBeStored("the label is gone", map[string]int{"v1": 5})
	w.mustHaveStoredVersions("the label is gone", "v1,v2")
}

// disturbedPass returns an operator after a pass. disturb was called during the pass,
// right before the write of an object.
func disturbedPass(t *testing.T, at, reason string, disturb func(*widgets)) (*widgets, *operator, *recorder) {
	t.Helper()
	w := newWidgets(t, shared)
	w.fill("v1", midPassObjects)
	w.flip()
	w.optIn()
	halt, wire := w.haltAt(at)
	said := &recorder{}
	o := w.selecting(func(o *operator) { o.migrator.PageSize, o.migrator.Recorder = midPassPage, said }, wire)

	pass := o.passUntil(t.Context(), halt)
	disturb(w)
	halt.release()
	if result, err := pass.end(); err != nil || result.RequeueAfter == 0 {
		t.Errorf("%s: %+v, %v, want a requeue and no error", reason, result, err)
	}
	return w, o, said
}

// TestReconcileStopsWhereTheLabelIsRemoved: when a user removes the label during a pass,
// the pass ends after one page at most, and does not trim.
func TestReconcileStopsWhereTheLabelIsRemoved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		at     string
		most   int
	}{
		"second page": {reason: "the pages to come are not begun", at: "w-0020", most: 2 * midPassPage},
		"last object": {reason: "the migrator reads the label again before the trim", at: "w-0119", most: midPassObjects},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o, said := disturbedPass(t, test.at, test.reason, func(w *widgets) { w.label(crdmigrator.AutoMigrateLabel, "") })
			if n := o.updates(); n > test.most {
				t.Errorf("%s: %d updates, want at most %d", test.reason, n, test.most)
			}
			w.mustHaveStoredVersions(test.reason, "v1,v2")

			sent := len(o.writes())
			o.mustReconcile("the next pass", reconcile.Result{})
			if writes := o.writes()[sent:]; len(writes) > 0 {
				t.Errorf("writes = %q, want none for a CRD out of scope", writes)
			}
			if events := said.all(); len(events) > 0 {
				t.Errorf("events = %+v, want none about a label that the user removed", events)
			}
		})
	}
}

// TestReconcileEndsWhenTheCRDIsDeleted: when a CRD is deleted during a pass, its objects
// are deleted as well, and none counts as a failure.
func TestReconcileEndsWhenTheCRDIsDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		at     string
		most   int
	}{
		"second page": {reason: "the next page shows the deletion", at: "w-0020", most: 2 * midPassPage},
		"last page":   {reason: "no page follows, and objects that were not found cause another pass", at: "w-0100", most: midPassObjects},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, o, said := disturbedPass(t, test.at, test.reason, func(w *widgets) { w.removeCRD() })
			o.mustReconcile("the next pass", reconcile.Result{})
			if n := o.updates(); n > test.most {
				t.Errorf("%s: %d updates, want at most %d", test.reason, n, test.most)
			}
			if events, errs := said.all(), o.logs.errors(); len(events) > 0 || len(errs) > 0 {
				t.Errorf("events %+v and errors %q about a deleted CRD, want none", events, errs)
			}
		})
	}
}

// TestReconcileResumesAfterAStop: an operator that is stopped during a pass does not
// trim, and the next one writes only the remaining objects.
func TestReconcileResumesAfterAStop(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", midPassObjects)
	w.flip()
	w.optIn()
	halt, wire := w.haltAt("w-0050")
	said := &recorder{}
	pageSize := func(o *operator) { o.migrator.PageSize, o.migrator.Recorder = midPassPage, said }
	ctx, stop := context.WithCancel(t.Context())
	pass := w.selecting(pageSize, wire).passUntil(ctx, halt)
	stop()
	halt.release()
	if _, err := pass.end(); !errors.Is(err, context.Canceled) {
		t.Errorf("the stopped pass: %v, want the reason of the stop", err)
	}
	w.mustHaveStoredVersions("after the stop", "v1,v2")
	done := w.stored()["v2"]
	if done == 0 || done == midPassObjects {
		t.Fatalf("%d objects were written before the stop, want some and not all", done)
	}
	if events := said.all(); len(events) > 0 {
		t.Errorf("events = %+v, want none about a stop", events)
	}

	next := w.selecting(pageSize)
	next.mustReconcile("the next start", reconcile.Result{})
	w.mustBeStored("after the next start", map[string]int{"v2": midPassObjects})
	w.mustHaveStoredVersions("after the next start", "v2")
	w.mustBeWrittenOnce()
	if n := next.updates(); n != midPassObjects-done {
		t.Errorf("the next start sent %d updates for the %d objects that were left", n, midPassObjects-done)
	}
}

// TestReconcileRemembersItsWrites: a pass does not repeat the updates of the pass
// before, not even those that the server elided and that no resourceVersion proves, also
// without a checkpoint.
func TestReconcileRemembersItsWrites(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		strip  bool
	}{
		"checkpoint": {reason: "the checkpoint does not prove updates that the server elided"},
		"stripped":   {reason: "GitOps removes annotations that it does not manage", strip: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 10)
			w.flip()
			for _, current := range []string{"current-1", "current-2", "current-3"} {
				w.create(w.config, "v2", current)
			}
			w.optIn()
			o := w.selecting(nil, w.conflicting("w-0003", always))

			o.mustReconcile("the first pass", reconcile.Result{RequeueAfter: 30 * time.Second})
			if n := o.updates(); n != 13 {
				t.Fatalf("first pass: %d updates for 13 objects", n)
			}
			if test.strip {
				w.annotate(nil)
			}
			o.mustReconcile("the second pass", reconcile.Result{RequeueAfter: 30 * time.Second})
			if n := o.updates() - 13; n != 1 {
				t.Errorf("%s: the second pass sent %d updates, want that of the object in conflict", test.reason, n)
			}
			w.mustHaveStoredVersions("with a conflict in each pass", "v1,v2")
		})
	}
}

// TestReconcileWritesAsConfigured: Write takes precedence over the update that a
// Selector uses by default.
func TestReconcileWritesAsConfigured(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	w.optIn()
	_, user := w.user(append(w.selectorPermissions(), permission{"patch", w.group, w.plural})...)
	o := w.selectingAs(user, func(o *operator) { o.migrator.Write = crdmigrator.WritePatch })
	o.mustReconcile("with a patch", reconcile.Result{})
	patches := o.requests.matching(func(r string) bool { return strings.HasPrefix(r, "PATCH /apis/"+w.group+"/v2/") })
	if updates := o.updates(); updates != 0 || len(patches) != 10 {
		t.Errorf("%d updates and %d patches for 10 objects, want patches alone", updates, len(patches))
	}
	w.mustBeStored("with a patch", map[string]int{"v2": 10})
	w.mustHaveStoredVersions("with a patch", "v2")
}
