package preflight

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AgentLease is the Lease of the agent that works, in its namespace.
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

// agentStopped reads the Lease of an agent until it is renewed. It returns nothing for an agent that
// renews it, or that has none: it may run without leader election.
func (h Hubs) agentStopped(ctx context.Context, view *View) (why string, err error) {
	key := client.ObjectKey{Namespace: view.AgentNamespace, Name: AgentLease}
	var first time.Time
	for deadline := h.Clock.Now().Add(agentLeaseDuration); ; {
		lease := &coordinationv1.Lease{}
		if err := view.Client.Get(ctx, key, lease); err != nil {
			return "", ignoreAbsent(err)
		}
		if lease.Spec.RenewTime == nil {
			return fmt.Sprintf("Lease %s has no holder: see whether it runs, with kubectl -n %s get pods", key, key.Namespace), nil
		}
		renewed := lease.Spec.RenewTime.Time
		if age := view.Clock.Since(renewed); age.Abs() < maxSkew || !first.IsZero() && renewed.After(first) {
			return "", nil
		}
		if first.IsZero() {
			first = renewed
		}
		if h.Clock.Now().After(deadline) {
			return fmt.Sprintf("it has not renewed Lease %s since %s: see whether it runs, with kubectl -n %s get pods", key, renewed.UTC().Format(time.RFC3339), key.Namespace), nil
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(h.poll()):
		}
	}
}

func (h Hubs) poll() time.Duration {
	if h.Poll > 0 {
		return h.Poll
	}
	return time.Second
}
