package source

import (
	"context"
	"slices"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// DeleteMoved deletes the objects of clusters that are registered at the target hub. It deletes the ManagedCluster
// last, so that the next pass after an interruption finds it. It does not delete a cluster that registers at the source
// again.
func (h Hub) DeleteMoved(ctx context.Context, clusters []string) (cluster.Result, error) {
	h.Hub = h.Pass().WithBatchReads(clusters)
	w, err := h.way()
	if err != nil {
		return cluster.Result{}, err
	}
	r, err := h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) { return h.deleteMoved(ctx, w, name) })
	if err != nil || len(r.Waiting) > 0 {
		return r, err
	}
	return r, w.unshare(ctx)
}

func (h Hub) deleteMoved(ctx context.Context, w way, name string) (waits string, err error) {
	read := h.Live()
	if h.Emptied.Has(name) { // only the ManagedCluster is left; the hub removes it
		read = h.Hub
	}
	mc, err := read.Find(ctx, name)
	if err != nil || mc == nil {
		return "", err
	}
	if err := cluster.CheckOriginal(mc); err != nil {
		return "", err
	}
	switch {
	case !cluster.HasOriginal(mc, h.UID):
		return "", cluster.Fail(cluster.ReasonNotPrepared, "ManagedCluster %s was created again on the source hub: delete it there, unless its cluster has left the target hub", name)
	case mc.Spec.HubAcceptsClient:
		return "", cluster.Fail(cluster.ReasonNotPrepared, "the source hub accepts %s again: set spec.hubAcceptsClient of its ManagedCluster there to false", name)
	}
	if !h.Emptied.Has(name) {
		if waits, err := h.empty(ctx, w, name); err != nil || waits != "" {
			return waits, err
		}
		h.Emptied.Add(name)
	}
	if waits, err = cluster.DeleteCluster(ctx, h.Client, mc); err != nil || waits == "" {
		return waits, err
	}
	if held, err := h.heldBy(ctx, name); held != "" || err != nil {
		return held, err
	}
	return waits, nil
}

// empty deletes what the hub has of a cluster, except its ManagedCluster.
func (h Hub) empty(ctx context.Context, w way, name string) (waits string, err error) {
	if waits, err := h.deleteObjects(ctx, name); err != nil || waits != "" {
		return waits, err
	}
	if err := h.keepNamespace(ctx, name); err != nil {
		return "", err
	}
	if p, ok := w.(plain); ok {
		return "", p.release(ctx, name)
	}
	return "", nil
}

// deleteObjects deletes from the last object to the first: a referrer is needed to find the object that it refers to,
// so it is deleted later.
func (h Hub) deleteObjects(ctx context.Context, name string) (waits string, err error) {
	rules := slices.DeleteFunc(slices.Clone(h.MigrationRules()), func(r resource.Rule) bool { return r.Kind == "ManagedCluster" })
	rules = append(rules, resource.Rule{
		Group: cluster.ObservabilityAddonKind.Group, Kind: cluster.ObservabilityAddonKind.Kind,
		Names: []string{observabilityAddon}, Finalizers: []string{observabilityFinalizer},
	})
	objects, err := h.Objects(ctx, name, rules)
	if err != nil {
		return "", err
	}
	slices.Reverse(objects)
	if waits, err := cluster.DeleteAllWithoutDeprovisioning(ctx, h.Client, objects); err != nil || waits != "" {
		return waits, err
	}
	if err := h.RemoveToken(ctx, name); err != nil {
		return "", err
	}
	return "", h.DeleteSigningRequests(ctx, name)
}

// observabilityAddon is the name of each ObservabilityAddon.
const observabilityAddon = "observability-addon"

// observabilityFinalizer is the finalizer that the agent of the observability add-on removes, which has left with the cluster.
const observabilityFinalizer = "observability.open-cluster-management.io/addon-cleanup"
