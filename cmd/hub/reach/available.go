package reach

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Available reads the ManagedCluster of a hub. It returns why the hub is not available, or empty if it is.
func Available(ctx context.Context, global client.Reader, name string) (why string, err error) {
	mc := &clusterv1.ManagedCluster{}
	err = global.Get(ctx, client.ObjectKey{Name: name}, mc)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the global hub has no ManagedCluster %s: import the hub, or correct its name", name), nil
	case meta.IsNoMatchError(err):
		return "the global hub serves no ManagedClusters: install Open Cluster Management", nil
	case err != nil:
		return "", fmt.Errorf("read ManagedCluster %s: %w", name, err)
	}
	c := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case c == nil:
		return fmt.Sprintf("hub %s is not available: condition %s is not reported", name, clusterv1.ManagedClusterConditionAvailable), nil
	case c.Status != "True":
		return fmt.Sprintf("hub %s is not available: condition %s is %s: %s", name, c.Type, c.Status, c.Message), nil
	}
	return "", nil
}
