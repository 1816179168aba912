package agent

import (
	"context"
	"slices"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/source"
	"github.com/godwit-dev/godwit/cmd/hub/target"
)

// sourcePass returns the pass of an action of the source hub. The pass of SendResources is in deploy.go.
func (w *work) sourcePass(action hub.Action) (pass, bool) {
	h := w.sourceHub()
	switch action {
	case hub.ValidateSource:
		return w.validateSource, true
	case hub.InstallBootstrap:
		return w.installBootstrap, true
	case hub.ReleaseClusters:
		return h.ReleaseClusters, true
	case hub.RestoreAcceptance:
		return h.RestoreAcceptance, true
	case hub.RemovePauses:
		return h.RemovePauses, true
	case hub.RevertBootstrap:
		return w.revertBootstrap, true
	case hub.AwaitReturn:
		return func(ctx context.Context, names []string) (cluster.Result, error) {
			return h.AwaitReturn(ctx, names, &w.leases)
		}, true
	case hub.DeleteMoved:
		return h.DeleteMoved, true
	}
	return nil, false
}

func (w *work) sourceHub() source.Hub {
	b := w.task.Source
	h := w.hubWith(b.UserObjects)
	return source.Hub{
		Hub: h, Returns: target.Returning(h, w.Namespace, b.ToHub), AgentNamespace: w.Namespace, To: b.ToHub, Reconnect: reconnectTimeout(b.ReconnectTimeoutSeconds),
		OnEvictedWorks: b.EvictedWorks, OnUserObjects: b.UserObjects,
	}
}

// revertBootstrap also ends what AwaitReturn ends, if the clusters have not left the hub and the command does not wait for them.
func (w *work) revertBootstrap(ctx context.Context, names []string) (cluster.Result, error) {
	h := w.sourceHub()
	if slices.ContainsFunc(w.orders, func(o order) bool { return o.Action == hub.AwaitReturn }) {
		return h.RevertBootstrap(ctx, names)
	}
	begin := h
	begin.Progress = nil // no cluster is done yet
	r, err := begin.RevertBootstrap(ctx, names)
	if err != nil {
		return r, err
	}
	ended, err := h.EndRevert(ctx, r.Done)
	r.Done = nil
	r.Add(ended)
	return r, err
}

// validateSource reports the clusters that a Placement selects, if the command names none.
func (w *work) validateSource(ctx context.Context, names []string) (cluster.Result, error) {
	h := w.sourceHub()
	if len(names) == 0 {
		selected, waits, err := h.ResolvePlacement(ctx, w.task.Source.PlacementName)
		if err != nil {
			return cluster.Result{}, err
		}
		if waits != "" {
			return cluster.Result{Waiting: map[string]string{wholeMigration: waits}}, nil
		}
		names = selected
		w.progress.report.Clusters = selected
	}
	h.Warn = w.found.setWarnings
	return h.ValidateSource(ctx, names)
}

func (w *work) installBootstrap(ctx context.Context, names []string) (cluster.Result, error) {
	if w.key == nil {
		return cluster.Result{}, cluster.Fail(cluster.ReasonKey, "the key by which the bootstrap kubeconfig is opened is gone from Secret %s%s", secretPrefix, w.migration.uid)
	}
	kubeconfig, err := message.OpenSecret(*w.key, w.migration.uid, w.task.Source.BootstrapSecret)
	if err != nil {
		return cluster.Result{}, cluster.Fail(cluster.ReasonKey, "the bootstrap kubeconfig of hub %s can't be opened: %v", w.task.Source.ToHub, err)
	}
	return w.sourceHub().InstallBootstrap(ctx, names, kubeconfig)
}
