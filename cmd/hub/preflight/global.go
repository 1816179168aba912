package preflight

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/reach"
)

// checkHubs checks on the global hub what the manager checks before it sends anything.
func (h Hubs) checkHubs(ctx context.Context, q Request, r *Report) error {
	if h.Direct != nil {
		checkAddress(ctx, reach.Address{ClientConfig: *h.Direct, Hub: q.To, Direct: true}, r)
		return nil
	}
	enrolled := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: h.ManagerNamespace, Name: manager.EnrolledHubs}
	if err := client.IgnoreNotFound(h.Global.Get(ctx, key, enrolled)); err != nil {
		return fmt.Errorf("read the enrolled hubs in ConfigMap %s: %w", key, err)
	}
	beats, err := h.heartbeats(ctx)
	if err != nil {
		return err
	}
	for _, side := range []struct {
		check, agent, hub string
		view              *View
	}{{CheckSourceHub, CheckSourceAgent, q.From, h.Source}, {CheckTargetHub, CheckTargetAgent, q.To, h.Target}} {
		why, err := reach.Available(ctx, h.Global, side.hub)
		if err != nil {
			return err
		}
		if why != "" {
			r.add(side.check, Blocked, api.ReasonHubNotReady, why)
		} else {
			r.pass(side.check)
		}
		if _, err := identity.Parse(enrolled.Data[side.hub]); err != nil {
			r.add(side.agent, Blocked, api.ReasonHubNotReady, fmt.Sprintf(
				"hub %s is not enrolled: ConfigMap %s has no valid key of its agent", side.hub, key))
			continue
		}
		decision, f := beats.decide(side.hub)
		if stopped, err := h.agentStopped(ctx, side.view); err != nil {
			return err
		} else if stopped != "" {
			decision, f = Blocked, finding(ReasonAgentStopped, fmt.Sprintf("the agent of hub %s has stopped: %s", side.hub, stopped))
		}
		r.Checks = append(r.Checks, Check{side.agent, decision, f})
	}
	return h.checkKnownAddress(ctx, q.To, r)
}

// checkKnownAddress looks for the address by which clusters reach the target hub.
func (h Hubs) checkKnownAddress(ctx context.Context, name string, r *Report) error {
	a, err := reach.Of(ctx, h.Global, name)
	if err != nil {
		return ignoreAbsent(err) // CheckTargetHub has said so
	}
	if a.URL == "" {
		r.add(CheckTargetAddress, Blocked, api.ReasonHubAddressUnknown, a.Unknown())
		return nil
	}
	if len(a.CABundle) == 0 {
		account := &metav1.PartialObjectMetadata{}
		account.SetGroupVersionKind(manager.AccountKind)
		account.Namespace, account.Name = name, "any"
		served, err := manager.ServesAccounts(ctx, h.Global, account)
		switch {
		case served, apierrors.IsForbidden(err): // only a kind that is served gets as far
			r.add(CheckTargetAddress, NotChecked, ReasonAddressNotChecked, a.TokenNotIssued())
			return nil
		case err != nil:
			return err
		}
	}
	checkAddress(ctx, a, r)
	return nil
}

// checkAddress checks that clusters verify the target hub.
func checkAddress(ctx context.Context, a reach.Address, r *Report) {
	switch untrusted, unproven := a.Check(ctx); {
	case untrusted != "":
		r.add(CheckTargetAddress, Blocked, api.ReasonHubAddressUntrusted, untrusted)
	case unproven != "":
		r.add(CheckTargetAddress, NotChecked, ReasonAddressNotChecked, unproven)
	default:
		r.pass(CheckTargetAddress)
	}
}

// checkOverlap looks for other migrations of the same clusters, whose end the migration would wait for.
func (h Hubs) checkOverlap(ctx context.Context, q Request, r *Report) error {
	list := &api.ManagedClusterMigrationList{}
	if err := h.Global.List(ctx, list); err != nil {
		return fmt.Errorf("list the migrations: %w", err)
	}
	found := false
	for i := range list.Items {
		m := &list.Items[i]
		if m.Status.CompletionTime != nil || !sharesHub(m, q) {
			continue
		}
		name := client.ObjectKeyFromObject(m).String()
		names, known, err := clustersOf(ctx, h.Global, m)
		if err != nil { // its state is lost, or a newer release has stored it: it moves nothing, and blocks no other migration
			found = true
			r.add(CheckOverlap, NotChecked, ReasonUndecided, err.Error())
			continue
		}
		if !known {
			found = true
			r.add(CheckOverlap, NotChecked, ReasonUndecided, fmt.Sprintf(
				"migration %s selects its clusters by Placement %s, and has not resolved it", name, m.Spec.IncludedManagedClustersPlacementRef))
			continue
		}
		for j := range r.Clusters {
			c := &r.Clusters[j]
			if slices.Contains(names, c.Name) {
				c.Reasons = append(c.Reasons, finding(api.ReasonWaiting, fmt.Sprintf("migration %s moves %s: wait for its end, or abort it", name, c.Name)))
			}
		}
	}
	if !found {
		r.pass(CheckOverlap)
	}
	return nil
}

func sharesHub(m *api.ManagedClusterMigration, q Request) bool {
	from, to := string(m.Spec.From), string(m.Spec.To)
	return from == q.From || from == q.To || to == q.From || to == q.To
}

// clustersOf returns the clusters of a migration that has not ended, or false if they are not known yet.
func clustersOf(ctx context.Context, reader client.Reader, m *api.ManagedClusterMigration) (names []string, known bool, err error) {
	for _, name := range m.Spec.IncludedManagedClusters {
		names = append(names, string(name))
	}
	if len(names) > 0 {
		return names, true, nil
	}
	state, err := manager.ReadState(ctx, reader, m)
	if err != nil {
		return nil, false, fmt.Errorf("read which clusters migration %s/%s has: %w", m.Namespace, m.Name, err)
	}
	for _, c := range state.Clusters {
		names = append(names, c.Name)
	}
	_, claimed := hub.ClaimOf("", state)
	return names, claimed, nil
}
