package preflight

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AgentLease is the name of the leader election Lease of the agent, in its namespace.
const AgentLease = "godwit-agent"

// agentLeaseDuration is how long an agent holds its Lease without a renewal, a default of
// controller-runtime.
const agentLeaseDuration = 15 * time.Second

// ignoreAbsent ignores that an object or its kind is absent.
func ignoreAbsent(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// agentStopped reads the Lease of an agent until it is renewed. It returns empty if the agent renews it, if the agent
// has no Lease (it may run without leader election), and for a hub without access.
func (h Hubs) agentStopped(ctx context.Context, view *View) (why string, err error) {
	if view == nil {
		return "", nil
	}
	key := client.ObjectKey{Namespace: view.AgentNamespace, Name: AgentLease}
	exists := false
	last, renews, err := h.awaitRenewal(ctx, renewal{clock: view.Clock, wait: agentLeaseDuration, read: func(ctx context.Context) (time.Time, error) {
		lease := &coordinationv1.Lease{}
		err := view.Client.Get(ctx, key, lease)
		exists = err == nil
		if err != nil || lease.Spec.RenewTime == nil {
			return time.Time{}, ignoreAbsent(err)
		}
		return lease.Spec.RenewTime.Time, nil
	}})
	switch {
	case err != nil, !exists, renews:
		return "", err
	case last.IsZero():
		return fmt.Sprintf("Lease %s has no holder: see whether it runs, with kubectl -n %s get pods", key, key.Namespace), nil
	}
	return fmt.Sprintf("it has not renewed Lease %s since %s: see whether it runs, with kubectl -n %s get pods", key, last.UTC().Format(time.RFC3339), key.Namespace), nil
}
