package preflight

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
)

// checkHubs checks on the global hub what the manager checks before it sends anything.
func (h Hubs) checkHubs(ctx context.Context, q Request, r *Report) error {
	if h.Direct != nil {
		checkAddress(ctx, q.To, *h.Direct, manager.DirectAddressUntrusted, r)
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
		why, err := manager.CheckAvailable(ctx, h.Global, side.hub)
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
	mc := &clusterv1.ManagedCluster{}
	if err := h.Global.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		return ignoreAbsent(err) // CheckTargetHub has said so
	}
	if configs := mc.Spec.ManagedClusterClientConfigs; len(configs) == 0 || configs[0].URL == "" {
		r.add(CheckTargetAddress, Blocked, api.ReasonHubAddressUnknown, fmt.Sprintf(
			"ManagedCluster %s of the target hub has no spec.managedClusterClientConfigs: set it to the URL and the CA of its API server", name))
		return nil
	}
	checkAddress(ctx, name, mc.Spec.ManagedClusterClientConfigs[0], manager.AddressUntrusted, r)
	return nil
}

// checkAddress checks that the CA which clusters get verifies the target hub.
func checkAddress(ctx context.Context, name string, address clusterv1.ClientConfig, explain func(name, url, why string) string, r *Report) {
	switch untrusted, unreached := cluster.CheckAddress(ctx, address); {
	case untrusted != "":
		r.add(CheckTargetAddress, Blocked, api.ReasonHubAddressUntrusted, explain(name, address.URL, untrusted))
	case unreached != "":
		r.add(CheckTargetAddress, NotChecked, ReasonAddressNotReached, fmt.Sprintf(
			"%s, by which clusters reach target hub %s, can't be reached from here: %s", address.URL, name, unreached))
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
