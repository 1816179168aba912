package source

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

const (
	// labelLocal marks the cluster that is the hub itself.
	labelLocal = "local-cluster"
	// annotationMode has the deploy mode of a klusterlet: on the cluster itself, or hosted on another one.
	annotationMode = "import.open-cluster-management.io/klusterlet-deploy-mode"
)

// hostedModes are the modes in which the klusterlet runs on another cluster. The import controller ignores letter case.
var hostedModes = []string{"Hosted", "SingletonHosted"}

// ValidateSource checks every cluster, and writes nothing.
func (h Hub) ValidateSource(ctx context.Context, clusters []string) (cluster.Result, error) {
	imports, err := h.Imports()
	if err != nil {
		return cluster.Result{}, err
	}
	if !imports {
		h.OnUserObjects = "" // Open Cluster Management keeps the namespaces of clusters that have left
	}
	h.Hub = h.Pass().WithBatchReads(clusters)
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) { return h.validate(ctx, name, imports) })
}

func (h Hub) validate(ctx context.Context, name string, imports bool) (waits string, err error) {
	mc, err := h.cluster(ctx, name)
	if err != nil {
		return "", err
	}
	conditions := mc.Status.Conditions
	switch {
	case !mc.DeletionTimestamp.IsZero():
		return "", cluster.Fail(cluster.ReasonBeingDeleted, "ManagedCluster %s is being deleted: remove it from the migration", name)
	case mc.Labels[labelLocal] == "true":
		return "", cluster.Fail(cluster.ReasonLocal, "%s is the source hub itself: remove it from the migration", name)
	case slices.ContainsFunc(hostedModes, func(mode string) bool { return strings.EqualFold(mode, mc.Annotations[annotationMode]) }):
		return "", cluster.Fail(cluster.ReasonHosted, "the klusterlet of %s runs on a hosting cluster, which does not move: remove the cluster from the migration", name)
	case !mc.Spec.HubAcceptsClient:
		return "", cluster.Fail(cluster.ReasonUnavailable, "the source hub does not accept %s: set spec.hubAcceptsClient of its ManagedCluster", name)
	case !meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionJoined), !meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionAvailable):
		return "", cluster.Fail(cluster.ReasonUnavailable, "%s is not Joined and Available: correct its agent, or remove it from the migration", name)
	}
	if _, err := cluster.OriginalOf(mc, h.UID); err != nil {
		return "", err
	}
	if imports {
		if _, err = h.klusterlet(ctx, name); err != nil {
			return "", err
		}
	}
	if err := h.checkLosses(ctx, name); err != nil {
		return "", err
	}
	return "", h.warn(ctx, mc)
}

// klusterlet reads the ManifestWork with the configuration of the klusterlet.
func (h Hub) klusterlet(ctx context.Context, name string) (cluster.Klusterlet, error) {
	k, found, err := cluster.KlusterletOf(ctx, h.Client, name)
	if err == nil && !found {
		err = cluster.Fail(cluster.ReasonNoKlusterletWork, "the hub has no ManifestWork %s/%s, by which it would configure the klusterlet: import the cluster with the import controller", name, cluster.KlusterletWork(name))
	}
	return k, err
}

// ResolvePlacement returns the clusters that a Placement selects. The caller stores them: later decisions of the
// Placement do not change a migration. While the scheduler writes its decisions, it returns what it waits for.
func (h Hub) ResolvePlacement(ctx context.Context, name string) (clusters []string, waits string, err error) {
	placement := &clusterv1beta1.Placement{}
	key := client.ObjectKey{Namespace: h.AgentNamespace, Name: name}
	if err := h.Client.Get(ctx, key, placement); apierrors.IsNotFound(err) {
		return nil, "", cluster.Fail(cluster.ReasonPlacement, "the source hub has no Placement %s: create it in the namespace of the agent", key)
	} else if err != nil {
		return nil, "", err
	}
	decisions := &clusterv1beta1.PlacementDecisionList{}
	if err := h.Client.List(ctx, decisions, client.InNamespace(h.AgentNamespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: name}); err != nil {
		return nil, "", err
	}
	for _, d := range decisions.Items {
		for _, decision := range d.Status.Decisions {
			clusters = append(clusters, decision.ClusterName)
		}
	}
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	if int32(len(clusters)) != placement.Status.NumberOfSelectedClusters { //nolint:gosec // a hub has some thousand clusters
		return nil, "the PlacementDecisions of " + key.String() + " are not complete", nil
	}
	return clusters, "", nil
}
