package rejoin

import (
	"bytes"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Facts are what the cluster and the target hub have, and what the user has chosen.
type Facts struct {
	// Cluster is the name of the cluster.
	Cluster string
	// UID of namespace kube-system of the cluster.
	UID string
	// Address is how the cluster reaches the target hub.
	Address clusterv1.ClientConfig
	// OnEvictedWorks is what becomes of what the lost hub has applied.
	OnEvictedWorks api.EvictedWorksPolicy
	Now            time.Time

	// Klusterlet of the cluster; nil if it has none.
	Klusterlet *operatorv1.Klusterlet
	// Record is what the Klusterlet had before.
	Record Record
	// Agent is as what the agent is registered.
	Agent Agent
	// Bootstrap is the kubeconfig in Secret bootstrap-hub-kubeconfig; nil without one.
	Bootstrap []byte
	// Works are what the work agent of the klusterlet has applied.
	Works []workv1.AppliedManifestWork
	// Leftovers are objects of the cluster that a migration has left.
	Leftovers []string

	// Managed is the ManagedCluster of the name at the target hub; nil if it has none.
	Managed *clusterv1.ManagedCluster
	// Received are objects at the target hub that a migration has created for the cluster.
	Received []string
	// Imports means that the target hub has the import controller, which has an account for each cluster and approves its requests.
	Imports bool
	// Imported is the bootstrap kubeconfig that the import controller has made for the cluster; nil without one.
	Imported []byte
	// Answers means that the lost hub answers from here.
	Answers bool
	// Untrusted is why the cluster would not verify the target hub, and Unproven why that is not known here; empty if it would.
	Untrusted, Unproven string
	// Arrived means that this process has seen the cluster renew its lease at the target hub.
	Arrived bool
}

// Agent is as what an agent is registered, according to the Secret with its certificate. It is empty without one.
type Agent struct {
	// Server is the address of the hub.
	Server string
	// Cluster is the name of the cluster there.
	Cluster string
	// Kubeconfig is that of the hub, without credentials.
	Kubeconfig []byte
}

// markPrefix precedes the UID of the cluster in the label of a ManagedCluster that no migration has created. Migrations have UIDs alone.
const markPrefix = "rejoin-"

// own is the mark of a ManagedCluster that this cluster has brought.
func (f Facts) own() string { return markPrefix + f.UID }

// Mark is the value of label godwit.dev/migration at the target: that of the migration which has created the ManagedCluster, or the
// cluster's own.
func (f Facts) Mark() string {
	if mark := f.mark(); mark != "" {
		return mark
	}
	return f.own()
}

// mark is the label of the ManagedCluster; empty without one.
func (f Facts) mark() string {
	if f.Managed == nil {
		return ""
	}
	return f.Managed.Labels[cluster.LabelMigration]
}

// Migration returns the UID of the migration that has created the ManagedCluster, or empty.
func (f Facts) Migration() string {
	if mark := f.mark(); !strings.HasPrefix(mark, markPrefix) {
		return mark
	}
	return ""
}

// joined reports whether the target hub has issued a certificate to a cluster of the name.
func (f Facts) joined() bool {
	return f.Managed != nil && meta.IsStatusConditionTrue(f.Managed.Status.Conditions, clusterv1.ManagedClusterConditionJoined)
}

// isRegistered reports whether the agent is registered at the target hub.
func (f Facts) isRegistered() bool { return f.Agent.Server != "" && f.Agent.Server == f.Address.URL }

// Done reports whether the cluster is at the target hub, and nothing is left to do.
func (f Facts) Done() bool { return f.isRegistered() && f.joined() && f.mark() == "" }

// tokenReserve is how long the token of a bootstrap kubeconfig must be valid, for an agent that registers now.
const tokenReserve = 10 * time.Minute

// bootstrap is what matters of the bootstrap kubeconfig.
type bootstrap struct {
	ofTarget bool
	token    bool
	// fresh means that its token is valid for a while.
	fresh bool
}

// bootstrap reads the bootstrap kubeconfig of the cluster.
func (f Facts) bootstrap() bootstrap {
	config, err := clientcmd.RESTConfigFromKubeConfig(f.Bootstrap)
	if err != nil {
		return bootstrap{}
	}
	expires, known := cluster.Expires(f.Bootstrap)
	return bootstrap{
		ofTarget: config.Host == f.Address.URL && bytes.Equal(config.CAData, f.Address.CABundle),
		token:    config.BearerToken != "",
		fresh:    known && expires.Sub(f.Now) > tokenReserve,
	}
}

// hasBootstrap reports whether an agent that starts now would register at the target hub.
func (f Facts) hasBootstrap() bool {
	if f.Imports {
		return f.Imported != nil && bytes.Equal(f.Bootstrap, f.Imported)
	}
	b := f.bootstrap()
	return b.ofTarget && b.fresh
}

// isObserved reports whether the klusterlet operator has carried out the present Klusterlet.
func (f Facts) isObserved() bool {
	return f.Klusterlet.Status.ObservedGeneration >= f.Klusterlet.Generation
}
