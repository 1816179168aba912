package ocm

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterManager is the only ClusterManager of a hub.
const clusterManager = "cluster-manager"

// operate simulates the operator of the hub: it restarts the registration controller with the users that the ClusterManager names.
func (h *Hub) operate(ctx context.Context) error {
	m := &operatorv1.ClusterManager{}
	err := h.Client.Get(ctx, client.ObjectKey{Name: clusterManager}, m)
	if apierrors.IsNotFound(err) {
		return h.restartController(nil)
	}
	if err != nil {
		return err
	}
	if m.Status.ObservedGeneration == m.Generation {
		return nil
	}
	var users []string
	if c := m.Spec.RegistrationConfiguration; c != nil && approves(c) {
		users = c.AutoApproveUsers
	}
	if err := h.restartController(users); err != nil {
		return err
	}
	m.Status.ObservedGeneration = m.Generation
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: operatorv1.ConditionClusterManagerApplied, Status: metav1.ConditionTrue, Reason: "ClusterManagerApplied", ObservedGeneration: m.Generation,
	})
	if err := h.Client.Status().Update(ctx, m); err != nil {
		return fmt.Errorf("report that ClusterManager %s is applied: %w", m.Name, err)
	}
	return nil
}

// approves reports whether automatic approval is enabled. Without it, the list of users has no effect.
func approves(c *operatorv1.RegistrationHubConfiguration) bool {
	for _, gate := range c.FeatureGates {
		if gate.Feature == "ManagedClusterAutoApproval" {
			return gate.Mode == operatorv1.FeatureGateModeTypeEnable
		}
	}
	return false
}
