// Package reason collects the documentation of all reasons, for the reference and for
// `godwit explain`. A test compares it with the constants in the source: it fails where a
// reason has no documentation, and where the documentation is of no reason.
package reason

import (
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/controller/clustermigration"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/cmd/internal/evidence/evidencereport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Subject is what reasons are about.
type Subject string

const (
	// CRD is a plan or a run: blockers, warnings, and objects that are not listed.
	CRD Subject = "CRD"
	// Rescue is a CRD whose objects are stored at a version that it lacks.
	Rescue Subject = "Rescue"
	// Bridge is a CRD of a release that skips others.
	Bridge Subject = "Bridge"
	// Release is a CRD of the next release.
	Release Subject = "Release"
	// Leftover is what names a version that is not served.
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
	// Import is a managed resource that only observes.
	Import Subject = "Import"
	// ClusterMigration is a ManagedClusterMigration.
	ClusterMigration Subject = "ManagedClusterMigration"
	// ManagedCluster is a cluster that changes hubs.
	ManagedCluster Subject = "ManagedCluster"
	// ClusterPreflight is a look at what a migration of managed clusters would do.
	ClusterPreflight Subject = "ClusterPreflight"
	// ClusterPlan is a cluster or a domain in a plan of all.
	ClusterPlan Subject = "Plan"
	// Evidence is a file with the output of a command.
	Evidence Subject = "Evidence"
	// Command is a command line.
	Command Subject = "Command"
)

// Group is the documentation of the reasons of one subject.
type Group struct {
	Subject Subject
	// Where says in which commands and objects the reasons are found.
	Where string
	Docs  []remedy.ReasonDoc
	// packages declare the constants, as folders of the repository.
	packages []string
}

// Groups are all groups, in the order in which they are shown.
func Groups() []Group {
	return []Group{
		{CRD, "godwit crd plan, godwit crd run, status.blockers of a CRDMigration", remedy.CRDs, []string{"internal/storageversion", "internal/storageversion/listing"}},
		{Release, "godwit crd check", remedy.Checks, []string{"internal/storageversion", "crdmigrator/releasecheck"}},
		{Rescue, "godwit crd rescue", remedy.Rescues, []string{"crdmigrator/rescue"}},
		{Bridge, "godwit crd bridge", remedy.Bridges, []string{"crdmigrator/bridge"}},
		{Leftover, "godwit crd doctor, godwit crd check", remedy.Leftovers, []string{"crdmigrator/doctor"}},
		{Resource, "godwit resource", remedy.Resources, []string{"internal/storageversion/resource"}},
		{Migration, "conditions and events of a CRDMigration", withOccurrences(remedy.Migrations, crdmigration.Occurrences), []string{"api/v1alpha1", "internal/storageversion"}},
		{Revision, "godwit revision, conditions and events of a ControllerRevisionUpgrade", withOccurrences(remedy.Revisions, revisionupgrade.Occurrences), []string{"revision"}},
		{Trigger, "conditions and events of a ControllerRevisionUpgradeTrigger", revisionupgrade.Reasons, []string{"cmd/internal/controller/revisionupgrade"}},
		{Marker, "godwit lint markers", remedy.Markers, []string{"crdmigrator/markers"}},
		{Provider, "godwit lint provider, failures of fieldmigration.Existing", remedy.Providers,
			[]string{"cmd/internal/lint/providerlint", "externalname/fieldmigration"}},
		{Name, "errors and conditions of managed resources, from providers that use externalname", remedy.ExternalNames,
			[]string{"externalname", "externalname/crossplane"}},
		{ManagedResource, "godwit externalname plan, apply, rollback and restore", remedy.ManagedResources, []string{"externalname/fleet"}},
		{Import, "godwit externalname ready", remedy.Imports, []string{"externalname/ready"}},
		{ClusterMigration, "conditions and events of a ManagedClusterMigration", withOccurrences(remedy.ClusterMigrations, clustermigration.Occurrences), []string{"cmd/hub/api/v1alpha1"}},
		{ManagedCluster, "status.failures of a ManagedClusterMigration, godwit cluster status", remedy.ManagedClusters, []string{"cmd/hub/cluster"}},
		{ClusterPreflight, "godwit cluster preflight", remedy.ClusterPreflights, []string{"cmd/hub/preflight"}},
		{ClusterPlan, "godwit plan", planreport.Reasons, []string{"cmd/internal/plan/planreport"}},
		{Evidence, "godwit report", evidencereport.Reasons, []string{"cmd/internal/evidence/evidencereport"}},
		{Command, "all commands of godwit", render.Reasons, []string{"cmd/internal/render"}},
	}
}

// withOccurrences adds how each reason shows. The controllers are asked, so that the
// documentation is never of another release than the code.
func withOccurrences(table []remedy.ReasonDoc, of func(reason string) []remedy.Occurrence) []remedy.ReasonDoc {
	all := slices.Clone(table)
	for i := range all {
		all[i].Occurrences = of(all[i].Reason)
	}
	return all
}

// Find lists the documentation of a reason, which may be one of several subjects, without
// regard to upper and lower case.
func Find(name string) []Explanation {
	var found []Explanation
	for _, g := range Groups() {
		for _, d := range g.Docs {
			if strings.EqualFold(d.Reason, name) {
				found = append(found, Explain(string(g.Subject), g.Where, d))
			}
		}
	}
	return found
}

// Names are all reasons, each once, in order.
func Names() []string {
	var all []string
	for _, g := range Groups() {
		for _, d := range g.Docs {
			all = append(all, d.Reason)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
