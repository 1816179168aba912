package crdmigrator_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// reconcileToTheEnd is how the test suite of an operator calls a reconciler that
// waits for API servers; docs/guides/embed.md shows it.
func reconcileToTheEnd(ctx context.Context, migrator *crdmigrator.CRDMigrator, request reconcile.Request) error {
	for {
		result, err := migrator.Reconcile(ctx, request)
		if err != nil {
			return err
		}
		if result.RequeueAfter == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(result.RequeueAfter, time.Second)):
		}
	}
}

// TestSuiteOfAnOperatorThatSwitches: the operator's user may read the API servers'
// leases, as in production and in envtest, so that the first result is a requeue.
func TestSuiteOfAnOperatorThatSwitches(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	o := newOperator(w, func(o *operator) {
		o.migrator.Config = map[client.Object]crdmigrator.ByObjectConfig{&widget{}: {}}
		o.migrator.Settle = 10 * time.Second // longer than the first reconciliation takes on a busy machine
	}, func(_ *rest.Config, options *manager.Options) { w.addToScheme(options.Scheme, "") })
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: w.name}}
	result, err := o.migrator.Reconcile(t.Context(), request)
	mustWait(t, result, err, 15*time.Second)
	w.mustLeave("after the first result", outcome{Stored: map[string]int{"v1": 3}, StoredVersions: "v1,v2"})

	ctx, cancel := context.WithTimeout(t.Context(), awaitLimit)
	defer cancel()
	if err := reconcileToTheEnd(ctx, o.migrator, request); err != nil {
		t.Fatal(err)
	}
	w.mustLeave("in the end", cleaned(3))
}
