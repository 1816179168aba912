// Package reason collects the catalogs of all packages, for the reference and for `godwit
// explain`. A test finds a catalog that is missing here.
package reason

import (
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/controller/clustermigration"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/cmd/internal/evidence/evidencereport"
	"github.com/godwit-dev/godwit/cmd/internal/lint/providerlint"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/doctor"
	"github.com/godwit-dev/godwit/crdmigrator/markers"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/audit"
	"github.com/godwit-dev/godwit/externalname/fieldmigration"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/handover"
	"github.com/godwit-dev/godwit/externalname/ready"
	storagedecision "github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
	"github.com/godwit-dev/godwit/revision/decision"
)

// Subject is the subject of a group of reasons.
type Subject string

const (
	// CRD is a plan or a run: blockers, warnings, and objects that are not listed.
	CRD Subject = "CRD"
	// Rescue is a CRD whose objects are stored at a version that it lacks.
	Rescue Subject = "Rescue"
	// Release is a CRD of the next release.
	Release Subject = "Release"
	// Leftover is a reference to a version that is not served.
	Leftover Subject = "Leftover"
	// Resource is a resource whose objects are written again.
	Resource Subject = "Resource"
	// Migration is a CRDMigration.
	Migration Subject = "CRDMigration"
	// Revision is a ControllerRevision, or the ControllerRevisionUpgrade that names it.
	Revision Subject = "ControllerRevision"
	// Trigger is a ControllerRevisionUpgradeTrigger.
	Trigger Subject = "ControllerRevisionUpgradeTrigger"
	// Marker is a marker in the source of an operator.
	Marker Subject = "Marker"
	// Provider is the source and the CRDs of a provider of managed resources.
	Provider Subject = "Provider"
	// Name is the external name of a managed resource.
	Name Subject = "ExternalName"
	// ManagedResource is a managed resource whose external name is to change.
	ManagedResource Subject = "ManagedResource"
	// NameAudit is a managed resource in an audit.
	NameAudit Subject = "ExternalNameAudit"
	// Import is a managed resource that only observes.
	Import Subject = "Import"
	// ClusterMigration is a ManagedClusterMigration.
	ClusterMigration Subject = "ManagedClusterMigration"
	// ManagedCluster is a cluster that changes hubs.
	ManagedCluster Subject = "ManagedCluster"
	// ClusterPreflight is a preflight of a migration of managed clusters.
	ClusterPreflight Subject = "ClusterPreflight"
	// ClusterPlan is a cluster or a domain in a plan of all.
	ClusterPlan Subject = "Plan"
	// Evidence is a file with the output of a command.
	Evidence Subject = "Evidence"
	// Command is a command line.
	Command Subject = "Command"
)

// Group has the reasons of one subject.
type Group struct {
	Subject Subject
	// Where names the commands and objects that have the reasons.
	Where string
	// Occurrences returns how a reason shows in a status; nil if no status has it. The controllers implement it, so the
	// documentation matches the code.
	Occurrences func(*godwit.Reason) []status.Occurrence
	catalogs    []*godwit.Catalog
}

// Reasons are the reasons of the group in the order of their declaration.
func (g Group) Reasons() []*godwit.Reason {
	var all []*godwit.Reason
	for _, c := range g.catalogs {
		all = append(all, c.Reasons()...)
	}
	return all
}

func group(s Subject, where string, catalogs ...*godwit.Catalog) Group {
	return Group{Subject: s, Where: where, catalogs: catalogs}
}

func (g Group) shownBy(occurrences func(*godwit.Reason) []status.Occurrence) Group {
	g.Occurrences = occurrences
	return g
}

// Groups are all groups, in the order in which they are shown.
func Groups() []Group {
	return []Group{
		group(CRD, "godwit crd plan, godwit crd run, status.blockers of a CRDMigration", &storagedecision.Reasons, &listing.Reasons),
		group(Release, "godwit crd check", &releasecheck.Reasons, &bridge.Reasons),
		group(Rescue, "godwit crd rescue", &rescue.Reasons),
		group(Leftover, "godwit crd doctor, godwit crd check", &doctor.Reasons),
		group(Resource, "godwit resource", &resource.Reasons),
		group(Migration, "conditions and events of a CRDMigration, godwit crd run", &storagedecision.StepReasons, &crdmigration.Reasons).
			shownBy(crdmigration.Occurrences),
		group(Revision, "godwit revision, conditions and events of a ControllerRevisionUpgrade", &decision.Reasons).
			shownBy(revisionupgrade.Occurrences),
		group(Trigger, "conditions and events of a ControllerRevisionUpgradeTrigger", &revisionupgrade.Reasons).
			shownBy(revisionupgrade.TriggerOccurrences),
		group(Marker, "godwit lint markers", &markers.Reasons),
		group(Provider, "godwit lint provider, failures of fieldmigration.Existing", &providerlint.Reasons, &fieldmigration.Reasons),
		group(Name, "errors and conditions of managed resources, from providers that use externalname", &externalname.Reasons, &externalname.ConditionReasons),
		group(ManagedResource, "godwit externalname plan, run, rollback, save, restore and audit", &fleet.Reasons, &handover.Reasons),
		group(NameAudit, "godwit externalname audit, godwit plan", &audit.Reasons),
		group(Import, "godwit externalname ready", &ready.Reasons),
		group(ClusterMigration, "conditions and events of a ManagedClusterMigration", &hubapi.Reasons).shownBy(clustermigration.Occurrences),
		group(ManagedCluster, "status.failures of a ManagedClusterMigration, godwit cluster status", &cluster.Reasons),
		group(ClusterPreflight, "godwit cluster plan", &preflight.Reasons),
		group(ClusterPlan, "godwit plan", &planreport.Reasons),
		group(Evidence, "godwit report", &evidencereport.Reasons),
		group(Command, "all commands of godwit", &render.Reasons),
	}
}

// Find returns the explanations of a reason, which several subjects may have. It ignores letter case.
func Find(name string) []Explanation {
	var found []Explanation
	for _, g := range Groups() {
		for _, r := range g.Reasons() {
			if strings.EqualFold(r.Name, name) {
				found = append(found, g.Explain(r))
			}
		}
	}
	return found
}

// Names returns all reasons, each once, sorted.
func Names() []string {
	var all []string
	for _, g := range Groups() {
		for _, r := range g.Reasons() {
			all = append(all, r.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
