package source

import (
	"context"
	"slices"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// DeleteMoved deletes what the source hub has of clusters that are registered at the target
// hub. The ManagedCluster is the last, so that a pass which was interrupted finds it. A
// cluster that registers at the source again is not deleted.
func (h Hub) DeleteMoved(ctx context.Context, clusters []string) (cluster.Result, error) {
	h.Hub = h.Pass().Together(clusters)
	r, err := h.Each(ctx, clusters, h.deleteMoved)
	if err != nil {
		return r, err
	}
	return r, h.removeShared(ctx)
}

func (h Hub) deleteMoved(ctx context.Context, name string) (waits string, err error) {
	read := h.Live()
	if h.Emptied.Has(name) { // only the ManagedCluster is left, which the hub removes
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
		if waits, err := h.deleteObjects(ctx, name); err != nil || waits != "" {
			return waits, err
		}
		h.Emptied.Add(name)
	}
	return cluster.DeleteCluster(ctx, h.Client, mc)
}

// deleteObjects deletes from the last to the first: an object to which another one refers
// goes before it, since it is found by it.
func (h Hub) deleteObjects(ctx context.Context, name string) (waits string, err error) {
	rules := slices.DeleteFunc(slices.Clone(h.Moving()), func(r resource.Rule) bool { return r.Kind == "ManagedCluster" })
	rules = append(rules, resource.Rule{Group: cluster.ObservabilityAddonKind.Group, Kind: cluster.ObservabilityAddonKind.Kind, Names: []string{observabilityAddon}})
	objects, err := h.Objects(ctx, name, rules)
	if err != nil {
		return "", err
	}
	slices.Reverse(objects)
	if waits, err := cluster.DeleteAllForGood(ctx, h.Client, objects); err != nil || waits != "" {
		return waits, err
	}
	return "", h.DeleteSigningRequests(ctx, name)
}

// observabilityAddon is the name of each ObservabilityAddon.
const observabilityAddon = "observability-addon"
