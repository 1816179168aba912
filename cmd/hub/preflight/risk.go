package preflight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

const (
	// maxSkew is what two clocks may differ by. Leases are valid for a minute by default, and
	// certificates from five minutes before they are issued.
	maxSkew = time.Minute
	// evictionGrace is the default of spec.workConfiguration.appliedManifestWorkEvictionGracePeriod
	// of a Klusterlet.
	evictionGrace = 60 * time.Minute
	// addOnLabel is on ManifestWorks of add-ons.
	addOnLabel = "open-cluster-management.io/addon-name"
	// clusterSetLabel is on a ManagedCluster that belongs to a ManagedClusterSet.
	clusterSetLabel = "cluster.open-cluster-management.io/clusterset"
)

// observed is what was read of a cluster beside what the migration checks.
type observed struct {
	works  []workv1.ManifestWork
	addOns []string
	// clusterSet of the cluster; empty for none.
	clusterSet string
	// skew is how far the clock of the cluster's agent is ahead of that of its hub, as the last renewal
	// of its lease shows. It is negative for a lease that was not renewed for some time.
	skew time.Duration
	// lease is how long a renewal is valid.
	lease time.Duration
}

// risks returns what a cluster would lose, and what of it blocks because the user has not accepted it.
func (o observed) risks(name string, acceptWorks bool) (blocks, risks []godwit.Finding) {
	if evicted := o.evictedWorks(name); len(evicted) > 0 {
		f := finding(ReasonWorkStays, fmt.Sprintf(
			"%s of the source hub does not move, and the work agent deletes from %s what it has applied %s after the move: "+
				"set spec.deleteOption.propagationPolicy to Orphan, and create it on the target hub",
			manifestWorks(evicted), name, minutes(evictionGrace)))
		if acceptWorks {
			risks = append(risks, f)
		} else {
			blocks = append(blocks, f)
		}
	}
	if len(o.addOns) > 0 {
		risks = append(risks, finding(ReasonAddOnStays, fmt.Sprintf(
			"ManagedClusterAddOn %s does not move, and its agent is deleted %s after the move: install it on the target hub",
			strings.Join(o.addOns, ", "), minutes(evictionGrace))))
	}
	if o.skew > maxSkew || o.skew < -maxSkew-o.lease {
		risks = append(risks, finding(ReasonClock, fmt.Sprintf(
			"the last renewal of lease %s/%s is %s from the time of the source hub: correct the clock of the cluster, or its agent has stopped",
			name, cluster.LeaseName, o.skew.Abs().Round(time.Second))))
	}
	return blocks, risks
}

// evictedWorks are the ManifestWorks whose objects the work agent deletes after the move. The import
// controller creates those of the klusterlet on the target hub, and an add-on is one risk with its works.
func (o observed) evictedWorks(name string) []string {
	var names []string
	for _, w := range o.works {
		ofKlusterlet := w.Name == cluster.KlusterletWork(name) || w.Name == cluster.KlusterletWork(name)+"-crds"
		_, ofAddOn := w.Labels[addOnLabel]
		stays := w.Spec.DeleteOption != nil && w.Spec.DeleteOption.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan
		if !ofKlusterlet && !ofAddOn && !stays {
			names = append(names, w.Name)
		}
	}
	slices.Sort(names)
	return names
}

// maxNamed bounds the ManifestWorks that a message names.
const maxNamed = 3

func manifestWorks(names []string) string {
	if len(names) > maxNamed {
		return fmt.Sprintf("ManifestWork %s and %d others", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	return "ManifestWork " + strings.Join(names, ", ")
}

func minutes(d time.Duration) string { return fmt.Sprintf("%.0f minutes", d.Minutes()) }
