package preflight

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/source"
)

const (
	// maxSkew is the tolerated difference between two clocks. Leases are valid for a minute by default, and
	// certificates from five minutes before they are issued.
	maxSkew = time.Minute
	// clusterSetLabel is on a ManagedCluster that belongs to a ManagedClusterSet.
	clusterSetLabel = "cluster.open-cluster-management.io/clusterset"
)

// clusterFacts are facts of a cluster that the migration itself does not check.
type clusterFacts struct {
	// evicted are the ManifestWorks whose objects the work agent deletes after the move, and unmoved are the objects of users that no
	// rule moves, if the user has accepted their loss.
	evicted, unmoved []string
	addOns           []string
	// clusterSet is the ManagedClusterSet of the cluster; empty if it has none.
	clusterSet string
	// skew is how far the clock of the cluster's agent is ahead of that of its hub, as the last renewal
	// of its lease shows. It is negative for a lease that was not renewed for some time.
	skew time.Duration
	// lease is the duration of the cluster's lease.
	lease time.Duration
}

// risks returns what a cluster would lose.
func (o clusterFacts) risks(name string) (risks []godwit.Finding) {
	if len(o.evicted) > 0 {
		risks = append(risks, finding(cluster.ReasonWorkStays, source.WhyEvicted(name, o.evicted)))
	}
	if len(o.unmoved) > 0 {
		risks = append(risks, finding(cluster.ReasonUserObjects, source.WhyUnmoved(name, o.unmoved)))
	}
	if len(o.addOns) > 0 {
		risks = append(risks, finding(ReasonAddOnStays, fmt.Sprintf(
			"ManagedClusterAddOn %s does not move, and the cluster deletes its agent %s: install it on the target hub",
			strings.Join(o.addOns, ", "), source.WhenEvicted)))
	}
	if o.skew > maxSkew || o.skew < -maxSkew-o.lease {
		risks = append(risks, finding(ReasonClock, fmt.Sprintf(
			"the last renewal of lease %s/%s is %s from the time of the source hub: correct the clock of the cluster, or its agent has stopped",
			name, cluster.LeaseName, o.skew.Abs().Round(time.Second))))
	}
	return risks
}
