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
	// maxSkew is the tolerated difference between two clocks. Leases are valid for a minute by default, and
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

// clusterFacts are facts of a cluster that the migration itself does not check.
type clusterFacts struct {
	works  []workv1.ManifestWork
	addOns []string
	// appliedBy is the tool that has applied spec.hubAcceptsClient from a source; empty without one.
	appliedBy string
	// held are objects of add-ons whose finalizers only the agent of the add-on ends, which is gone after the move.
	held []heldObject
	// clusterSet is the ManagedClusterSet of the cluster; empty if it has none.
	clusterSet string
	// skew is how far the clock of the cluster's agent is ahead of that of its hub, as the last renewal
	// of its lease shows. It is negative for a lease that was not renewed for some time.
	skew time.Duration
	// lease is the duration of the cluster's lease.
	lease time.Duration
}

// heldObject is an object with finalizers.
type heldObject struct {
	resource, name string // as kubectl accepts them
	finalizers     []string
}

// risks returns what a cluster would lose. blocks are the risks that the user has not accepted.
func (o clusterFacts) risks(name string, acceptWorks bool) (blocks, risks []godwit.Finding) {
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
	if o.appliedBy != "" {
		risks = append(risks, finding(ReasonApplied, fmt.Sprintf(
			"%s applies spec.hubAcceptsClient of ManagedCluster %s on the source hub, and would set it back when the cluster has moved: suspend what applies it", o.appliedBy, name)))
	}
	for _, h := range o.held {
		risks = append(risks, finding(ReasonAddOnFinalizer, fmt.Sprintf(
			"the deletion of %s %s/%s on the source hub waits for %s, which only the add-on's agent removes, and the cluster has left with it. When Cleaning waits for it: kubectl -n %s patch %s %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
			h.resource, name, h.name, strings.Join(h.finalizers, ", "), name, h.resource, h.name)))
	}
	if o.skew > maxSkew || o.skew < -maxSkew-o.lease {
		risks = append(risks, finding(ReasonClock, fmt.Sprintf(
			"the last renewal of lease %s/%s is %s from the time of the source hub: correct the clock of the cluster, or its agent has stopped",
			name, cluster.LeaseName, o.skew.Abs().Round(time.Second))))
	}
	return blocks, risks
}

// evictedWorks returns the ManifestWorks whose objects the work agent deletes after the move. It omits those of the
// klusterlet, which the import controller creates on the target hub, and those of add-ons, which are a risk of their
// own.
func (o clusterFacts) evictedWorks(name string) []string {
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
