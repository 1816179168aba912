package rejoin

import (
	"slices"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
)

// Step is what is due.
type Step string

// Steps, in their order.
const (
	// Accept creates the ManagedCluster at the target hub, or accepts the one that is there.
	Accept Step = "Accept"
	// Protect has the work agent evict nothing.
	Protect Step = "Protect"
	// AwaitOperator waits until the work agent has been told so.
	AwaitOperator Step = "AwaitOperator"
	// AwaitImport waits until the import controller has made a bootstrap kubeconfig for the cluster.
	AwaitImport Step = "AwaitImport"
	// Bootstrap gives the cluster a bootstrap kubeconfig of the target hub, with a token of an account of its own, or the one of the import
	// controller.
	Bootstrap Step = "Bootstrap"
	// OneHub has the klusterlet use this bootstrap kubeconfig, if a migration has given it those of two hubs.
	OneHub Step = "OneHub"
	// Await approves the request of the cluster, and waits until it has renewed its lease at the target hub.
	Await Step = "Await"
	// Release removes the works of the lost hub as owners of what must stay.
	Release Step = "Release"
	// Handover removes the token from the bootstrap kubeconfig: the agent has its certificate. That of an import controller stays valid.
	Handover Step = "Handover"
	// Clean deletes what a migration has left on the cluster.
	Clean Step = "Clean"
	// Restore gives the Klusterlet the eviction that it had.
	Restore Step = "Restore"
	// Finish ends the bootstrap account, and then removes the mark of the ManagedCluster.
	Finish Step = "Finish"
	// Done means that the cluster is at the target hub, and that nothing is left to do.
	Done Step = "Done"
)

// Next returns the step that is due. [Check] accepts the facts.
func Next(f Facts) Step {
	switch {
	case f.Done():
		return Done
	case !f.isAccepted():
		return Accept
	case !f.isRegistered() || !f.joined():
		return beforeRegistration(f)
	case !f.Arrived:
		return Await
	case len(f.Released()) > 0:
		return Release
	case !f.Imports && f.bootstrap().ofTarget && f.bootstrap().token:
		return Handover
	case len(f.Leftovers) > 0:
		return Clean
	case f.Record.Eviction != nil || len(f.Record.Secrets) > 0:
		return Restore
	}
	return Finish
}

// beforeRegistration returns the step for a cluster that the target hub accepts, and that has not registered there.
func beforeRegistration(f Facts) Step {
	_, several := klusterlet.KnowsSeveral(f.Klusterlet)
	switch {
	case f.isRegistered(): // it has its certificate, and is about to join
		return Await
	case len(f.Released()) > 0 && !isProtected(f.Klusterlet):
		return Protect
	case f.Record.Eviction != nil && !f.isObserved():
		return AwaitOperator
	case f.Imports && f.Imported == nil:
		return AwaitImport
	case !f.hasBootstrap():
		return Bootstrap
	case several:
		return OneHub
	}
	return Await
}

// configuring are the annotations by which a migration configures a klusterlet at the target hub.
func (f Facts) configuring() []string {
	if f.Imports {
		return []string{cluster.AnnotationMigrating, cluster.AnnotationNoAutoImport, cluster.AnnotationKlusterletConfig}
	}
	return []string{cluster.AnnotationMigrating}
}

// isAccepted reports whether the target hub has a ManagedCluster that is marked, accepted, and that no migration configures.
func (f Facts) isAccepted() bool {
	if f.mark() == "" || !f.Managed.Spec.HubAcceptsClient {
		return false
	}
	original, err := cluster.OriginalOf(f.Managed, f.mark())
	return err == nil && !slices.ContainsFunc(f.configuring(), original.Has)
}
