// Package clusterreport is the output of `godwit cluster`: its JSON contract, and its tables and sums for users. It is
// pure: values in, text out.
//
// Read contract.go, then preflight.go, migration.go and rejoin.go.
package clusterreport

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Check is what a preflight has found for the migration as a whole.
type Check struct {
	Name     string             `json:"name"`
	Decision preflight.Decision `json:"verdict"` //nolint:misspell // the contract's name
	// Problem has a remedy where there is a command. The message says what to do as well.
	render.Problem
}

// Candidate is what a preflight has found for a cluster.
type Candidate struct {
	Name     string             `json:"name"`
	Decision preflight.Decision `json:"verdict"` //nolint:misspell // the contract's name
	Reasons  []render.Cause     `json:"reasons"`
	AtRisk   []render.Cause     `json:"atRisk"`
}

// Preflight is the document of a preflight.
type Preflight struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	render.Provenance
	From     string             `json:"from"`
	To       string             `json:"to"`
	Decision preflight.Decision `json:"verdict"` //nolint:misspell // the contract's name
	Checks   []Check            `json:"checks"`
	Clusters []Candidate        `json:"clusters"`
}

// WithProvenance implements [render.Evidence].
func (p Preflight) WithProvenance(made render.Provenance) any {
	p.Provenance = made
	return p
}

// Names are the resource names of the clusters.
func (p Preflight) Names() []string {
	names := make([]string, len(p.Clusters))
	for i, c := range p.Clusters {
		names[i] = "managedcluster.cluster.open-cluster-management.io/" + c.Name
	}
	return names
}

// Cluster is a managed cluster of a migration.
type Cluster struct {
	Name  string           `json:"name"`
	State hub.ClusterState `json:"state"`
	// Step is the action that the cluster waits for, from phase Registering on. It is empty after the end of the cluster.
	Step string `json:"step"`
	// Hub is where the cluster is registered; empty while that is not proven.
	Hub string `json:"hub"`
	render.Cause
	// Warnings are what may keep the cluster from the end of the migration. They are empty after the end of the cluster.
	Warnings []render.Cause `json:"warnings"`
	// Seconds since the migration has started, until the cluster came to its state. They run while it
	// is on its way.
	Seconds float64 `json:"seconds"`
}

// Counts of the clusters.
type Counts struct {
	Total    int32 `json:"total"`
	Moved    int32 `json:"moved"`
	Failed   int32 `json:"failed"`
	Restored int32 `json:"restored"`
	// Gone are clusters whose ManagedCluster a user has deleted, and Forgotten those without which the migration ends.
	Gone      int32 `json:"gone"`
	Forgotten int32 `json:"forgotten"`
}

// Migration is the document of a migration.
type Migration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// A migration in a list has no provenance: the list has it.
	render.Provenance
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Phase     api.Phase `json:"phase"`
	// Settled means that the migration has ended and that nothing of it is left to do.
	Settled bool `json:"settled"`
	render.Cause
	// Seconds from the start until nothing was left to do, or until now.
	Seconds  float64   `json:"seconds"`
	Counts   Counts    `json:"counts"`
	Clusters []Cluster `json:"clusters"`
}

// ResourceName is the migration as kubectl writes it.
func (m Migration) ResourceName() string {
	return "managedclustermigration.global-hub.open-cluster-management.io/" + m.Name
}

// WithProvenance implements [render.Evidence].
func (m Migration) WithProvenance(made render.Provenance) any {
	m.Provenance = made
	return m
}

// Kinds of the documents.
const (
	preflightKind     = "ClusterPreflight"
	migrationKind     = "ClusterMigrationReport"
	migrationListKind = "ClusterMigrationReportList"
)

// PreflightOf returns the document of a preflight. remedy returns a command for a check, or empty.
func PreflightOf(r preflight.Report, remedy func(preflight.Check) string) Preflight {
	p := Preflight{APIVersion: render.APIVersion, Kind: preflightKind, From: r.From, To: r.To, Decision: r.Decision(), Checks: []Check{}, Clusters: []Candidate{}}
	for _, c := range r.Checks {
		one := Check{c.Name, c.Decision, render.Problem{Reason: c.Reason.String(), Message: c.Message}}
		if c.Decision != preflight.Ready {
			one.Remedy = remedy(c)
		}
		p.Checks = append(p.Checks, one)
	}
	for _, c := range r.Clusters {
		p.Clusters = append(p.Clusters, Candidate{c.Name, c.Decision, causes(c.Reasons), causes(c.AtRisk)})
	}
	return p
}

// NoPreflight returns the document of a failed preflight.
func NoPreflight(from, to string) Preflight {
	p := PreflightOf(preflight.Report{From: from, To: to}, nil)
	p.Decision = preflight.NotChecked
	return p
}

func causes(list []godwit.Finding) []render.Cause {
	all := make([]render.Cause, len(list))
	for i, f := range list {
		all[i] = render.NewCause(f)
	}
	return all
}

// MigrationList returns the list of several migrations.
func MigrationList(items []Migration) render.List[Migration] {
	return render.NewList(migrationListKind, items)
}

// NoMigration returns the document of a failed command.
func NoMigration(namespace, name string) Migration {
	return Migration{APIVersion: render.APIVersion, Kind: migrationKind, Namespace: namespace, Name: name, Clusters: []Cluster{}}
}

// reasonNotObserved is the reason of a migration that no manager has observed.
const reasonNotObserved = "NotObserved"

// MigrationOf returns the document of a migration with its state.
func MigrationOf(m *api.ManagedClusterMigration, s hub.State, now time.Time) Migration {
	d := NoMigration(m.Namespace, m.Name)
	d.From, d.To, d.Phase, d.Settled = string(m.Spec.From), string(m.Spec.To), m.Status.Phase, m.Status.CompletionTime != nil
	d.Reason, d.Message = reasonOf(m, now)
	counts := s.Counts()
	d.Counts = countsOf(counts)
	if c := m.Status.CompletionTime; c != nil {
		now = c.Time
	}
	d.Seconds = since(m, now)
	for _, c := range s.Clusters {
		one := Cluster{Name: c.Name, State: c.State, Step: string(s.PlaceOf(c)), Hub: hubOf(m, s, c), Cause: render.Cause{Reason: c.Reason, Message: c.Message}, Warnings: warningsOf(s, c), Seconds: since(m, now)}
		if c.Note != "" {
			one.Cause = render.Cause{Reason: noteReason(c.State), Message: c.Note}
		}
		if certificate := c.Unrevoked(); certificate != "" {
			one.Cause = withCertificate(one.Cause, certificate)
		}
		if hasArrived(c.State) && !c.Since.IsZero() {
			one.Seconds = since(m, c.Since)
		}
		d.Clusters = append(d.Clusters, one)
	}
	return d
}

func warningsOf(s hub.State, c hub.Cluster) []render.Cause {
	all := []render.Cause{}
	for _, w := range s.Warnings {
		if w.Cluster == c.Name && !c.HasEnded() {
			all = append(all, render.Cause{Reason: w.Reason, Message: w.Message})
		}
	}
	return all
}

// withCertificate adds what follows from a certificate to the cause of a cluster.
func withCertificate(c render.Cause, certificate string) render.Cause {
	if c.Message == "" {
		return render.Cause{Reason: api.ReasonCertificateIssued.Name, Message: certificate}
	}
	c.Message += "; " + api.ReasonCertificateIssued.Name + ": " + certificate
	return c
}

func countsOf(c api.ClusterCounts) Counts {
	return Counts{c.Total, c.Moved, c.Failed, c.Restored, c.Gone, c.Forgotten}
}

// noteReason returns the reason of a cluster with a note.
func noteReason(s hub.ClusterState) string {
	if s == hub.Forgotten || s == hub.Restored {
		return api.ReasonLeftBehind.Name
	}
	return cluster.ReasonNotFound.Name
}

// SummaryOf returns the document of a migration from its status alone, without clusters.
func SummaryOf(m *api.ManagedClusterMigration, now time.Time) Migration {
	d := MigrationOf(m, hub.State{}, now)
	if c := m.Status.Counts; c != nil {
		d.Counts = countsOf(*c)
	}
	return d
}

func since(m *api.ManagedClusterMigration, t time.Time) float64 {
	if m.Status.StartTime == nil {
		return 0
	}
	return max(0, t.Sub(m.Status.StartTime.Time).Seconds())
}

// hasArrived reports whether a cluster has arrived at one of the hubs, or is on its way no more.
func hasArrived(s hub.ClusterState) bool {
	return s == hub.Registered || s == hub.Moved || s == hub.Returned || s == hub.Restored || s == hub.Gone || s == hub.Forgotten
}

// hubOf returns the hub of the cluster if it is proven: by two renewals of its lease, or because no command has moved
// it yet.
func hubOf(m *api.ManagedClusterMigration, s hub.State, c hub.Cluster) string {
	switch {
	case c.State == hub.Registered, c.State == hub.Moved:
		return string(m.Spec.To)
	case c.State == hub.Returned, c.State == hub.Restored:
		return string(m.Spec.From)
	case c.State == hub.Selected && hub.StageNumber(s.Stage) > 0 && hub.StageNumber(s.Stage) < hub.StageNumber(api.PhaseRegistering):
		return string(m.Spec.From)
	}
	return ""
}

// observedWithin is the time in which a manager that runs observes a new migration.
const observedWithin = 30 * time.Second

// reasonOf returns the reason of the True condition among Ready, Reconciling and Stalled.
func reasonOf(m *api.ManagedClusterMigration, now time.Time) (reason, message string) {
	for _, kind := range []string{api.ConditionStalled, api.ConditionReconciling, api.ConditionReady} {
		if c := meta.FindStatusCondition(m.Status.Conditions, kind); c != nil && c.Status == "True" {
			return c.Reason, c.Message
		}
	}
	if m.Status.Phase != "" {
		return "", ""
	}
	if now.Sub(m.CreationTimestamp.Time) < observedWithin {
		return reasonNotObserved, "the manager has not observed the migration yet, which was created a moment ago"
	}
	return reasonNotObserved, "no manager has observed the migration: see whether `godwit manager --controllers=clusterMigration` runs"
}
