package crdmigrator_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestReconcileReportsOnceThatItDoesNotConverge: another client writes an object all the
// time. That is no error, but after five passes the migrator emits one warning.
func TestReconcileReportsOnceThatItDoesNotConverge(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	w.optIn()
	var calm atomic.Bool
	said := &recorder{}
	o := w.selecting(func(o *operator) { o.migrator.Recorder = said },
		w.conflicting("w-0003", func() bool { return !calm.Load() }))

	o.conflictedPasses(12, 5, said, 1)
	calm.Store(true)
	o.mustReconcile("a pass without conflicts", reconcile.Result{})
	w.mustHaveStoredVersions("a pass without conflicts", "v2")

	calm.Store(false)
	w.setStoredVersions("v1", "v2")
	o.conflictedPasses(5, 5, said, 2)
	if errs := o.logs.errors(); len(errs) > 0 {
		t.Errorf("logged as errors: %q", errs)
	}
}

// conflictedPasses makes passes that conflict. Pass due emits a warning, so that total
// have been emitted; the other passes emit none.
func (o *operator) conflictedPasses(n, due int, said *recorder, total int) {
	o.t.Helper()
	for i := range n {
		reason := fmt.Sprintf("conflicted pass %d", i+1)
		o.mustReconcile(reason, reconcile.Result{RequeueAfter: 30 * time.Second})
		want := total
		if i+1 < due {
			want--
		}
		lines, warnings := o.logs.informative(decision.ReasonNotConverging.Name), said.warnings()
		if len(lines) != want || len(warnings) != want {
			o.t.Fatalf("%s: %d lines and %d warnings about not converging, want %d each: %q, %+v", reason, len(lines), len(warnings), want, lines, warnings)
		}
	}
	last := said.warnings()[total-1]
	if last.eventType != corev1.EventTypeWarning || last.regarding != o.w.name || !strings.HasPrefix(last.note, decision.ReasonNotConverging.Name) || !strings.Contains(last.note, "w-0003") {
		o.t.Errorf("the warning is %+v, want it to be about %s and to name the reason and the object", last, o.w.name)
	}
}
