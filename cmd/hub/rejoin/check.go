package rejoin

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
)

// Check refuses a cluster that the steps would not bring to the target hub, or that would lose something.
func Check(f Facts) error {
	if err := checkKlusterlet(f); err != nil || f.Done() {
		return err
	}
	if err := checkTarget(f); err != nil {
		return err
	}
	if f.Answers && !f.isRegistered() && !f.bootstrap().ofTarget {
		return cluster.Fail(cluster.ReasonHubAnswers, "the hub of %s at %s answers from here, so it is not lost: move the cluster with --from-context instead of --cluster-context", f.Cluster, f.Agent.Server)
	}
	if f.Untrusted != "" {
		return cluster.Fail(api.ReasonHubAddressUntrusted, "%s", f.Untrusted)
	}
	if works := f.Evictable(); len(works) > 0 && f.OnEvictedWorks != api.EvictedWorksOrphan && f.OnEvictedWorks != api.EvictedWorksAccept {
		return cluster.Fail(cluster.ReasonWorkStays, "ManifestWork %s of the lost hub can't move, and the work agent deletes from %s what it has applied: choose Orphan or Accept with --on-evicted-works", cluster.Few(works), f.Cluster)
	}
	return nil
}

// checkKlusterlet refuses a klusterlet that can't change hubs by a bootstrap kubeconfig.
func checkKlusterlet(f Facts) error {
	refuse := func(why string) error {
		return cluster.Fail(cluster.ReasonKlusterlet, "%s can't change hubs: %s", f.Cluster, why)
	}
	k := f.Klusterlet
	switch {
	case k == nil:
		return refuse("the cluster of the context has no Klusterlet " + klusterlet.Name + "; join it: clusteradm join")
	case !k.DeletionTimestamp.IsZero():
		return refuse("its Klusterlet " + k.Name + " is being deleted; wait until it is gone, and join it: clusteradm join")
	case k.Spec.ClusterName != "" && k.Spec.ClusterName != f.Cluster:
		return refuse(fmt.Sprintf("the cluster of the context has the name %s at its hub, according to its Klusterlet; give that name", k.Spec.ClusterName))
	case f.Agent.Cluster != "" && f.Agent.Cluster != f.Cluster:
		return refuse(fmt.Sprintf("the cluster of the context has the name %s at its hub, according to Secret %s; give that name", f.Agent.Cluster, klusterlet.HubSecret))
	}
	if why := klusterlet.Unsuitable(k); why != "" {
		return refuse(why + "; join it to the target hub by hand")
	}
	if secrets, several := klusterlet.KnowsSeveral(k); several && !f.ofMigration(secrets) {
		return refuse(fmt.Sprintf("its Klusterlet has bootstrap kubeconfigs of several hubs, in Secrets %s, and its agent looks for another one by itself; if all are lost, remove spec.registrationConfiguration.bootstrapKubeConfigs and the feature gate MultipleHubs",
			strings.Join(secrets, ", ")))
	}
	return nil
}

// ofMigration reports whether a migration has given the klusterlet several hubs, and not a user.
func (f Facts) ofMigration(secrets []string) bool {
	return f.Migration() != "" || !slices.ContainsFunc(secrets, func(name string) bool {
		return name != klusterlet.SourceSecret && name != klusterlet.TargetSecret
	})
}

// checkTarget refuses a name that the target hub has for something else.
func checkTarget(f Facts) error {
	mc := f.Managed
	switch {
	case f.isRegistered() && f.mark() == "":
		return cluster.Fail(cluster.ReasonOtherCluster, "the agent of %s is registered at the address of the target hub, %s, which has not created it by this command: see the log of the agent; if the hub was rebuilt at its old address, join the cluster again: clusteradm join",
			f.Cluster, f.Address.URL)
	case mc == nil:
		return nil
	case !mc.DeletionTimestamp.IsZero():
		return cluster.Fail(cluster.ReasonBeingDeleted, "ManagedCluster %s of the target hub is being deleted: wait until it is gone", f.Cluster)
	case f.mark() != f.own() && f.Migration() == "" && f.mark() != "":
		return cluster.Fail(cluster.ReasonOtherCluster, "ManagedCluster %s of the target hub is for another cluster, whose namespace kube-system has UID %s: a hub has one cluster of a name; detach that cluster from it first",
			f.Cluster, strings.TrimPrefix(f.mark(), markPrefix))
	case f.joined() && !f.isRegistered():
		return cluster.Fail(cluster.ReasonOtherCluster, "the target hub has a cluster %s that has joined, and the agent of this cluster is registered at %q: if that is another address of the target hub, give it with --to-server; if it is another cluster, a hub has one cluster of a name: detach that cluster first",
			f.Cluster, f.Agent.Server)
	case f.Migration() != "" && !mc.Spec.HubAcceptsClient && len(f.Received) > 0:
		return cluster.Fail(cluster.ReasonNotPrepared, "migration %s has lost its source before all objects of %s had come: the target hub has %s. Delete those with label %s=%s in namespace %s there, and restore them from a backup of the lost hub",
			f.Migration(), f.Cluster, cluster.Few(f.Received), cluster.LabelMigration, f.Migration(), f.Cluster)
	}
	return nil
}
