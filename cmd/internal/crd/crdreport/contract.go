package crdreport

import (
	"cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// Plan says what a run would migrate for one CRD. A CRD that could not be read is Blocked,
// with the cause as its blocker.
type Plan struct {
	Name           string   `json:"name"`
	State          string   `json:"state"` // Clean, Ready, Blocked or Unknown
	StorageVersion string   `json:"storageVersion"`
	ServedVersions []string `json:"servedVersions"`
	StoredVersions []string `json:"storedVersions"`
	// Objects is null if they were not counted.
	Objects *int64 `json:"objects"`
	// Unlisted says why the API server did not list the objects. It is null if they were listed.
	Unlisted      *Unlisted        `json:"unlisted"`
	ManagedFields string           `json:"managedFields"` // Unknown, Clean or Stale
	Blockers      []render.Problem `json:"blockers"`
	// Warnings do not block a run.
	Warnings []render.Problem `json:"warnings"`
	// Preflight is null if no write was sent as a dry run.
	Preflight *decision.PreflightSummary `json:"preflight"`
}

// PlanOf returns a plan as an item of the output, with its fixes as commands.
func PlanOf(p decision.Plan, w remedy.Writer) Plan {
	return Plan{
		Name:           p.Name,
		State:          string(p.State),
		StorageVersion: p.StorageVersion,
		ServedVersions: p.ServedVersions,
		StoredVersions: p.StoredVersions,
		Objects:        p.Objects,
		Unlisted:       UnlistedOf(p.Unlisted, w),
		ManagedFields:  string(p.ManagedFields),
		Blockers:       render.NewProblems(p.Blockers, w),
		Warnings:       render.NewProblems(p.Warnings, w),
		Preflight:      p.Preflight,
	}
}

// Unlisted says why the API server did not list the objects, as a
// [decision.UnlistedError] does.
type Unlisted struct {
	render.Problem
	// Transient means that the cause may end without an action of the user: retry.
	Transient bool `json:"transient"`
}

// UnlistedOf returns nil if the objects were listed.
func UnlistedOf(e *decision.UnlistedError, w remedy.Writer) *Unlisted {
	if e == nil {
		return nil
	}
	return &Unlisted{render.NewProblem(e.Finding, w), e.Transient()}
}

// Result is the result of a run for one CRD.
type Result string

const (
	// Succeeded means that every object is at the storage version, and that
	// status.storedVersions is trimmed unless the user gave --no-trim.
	Succeeded Result = "Succeeded"
	// Partial means that the run wrote or tried objects, and that some objects or their
	// managedFields are left. Failures say why.
	Partial Result = "Partial"
	// Failed means that an error ended the run before its first write. Failures say why.
	Failed Result = "Failed"
	// Blocked means that the run was refused and wrote nothing. Failures say why.
	Blocked Result = "Blocked"
	// Unknown means that the API server did not list the objects, and that the run wrote
	// nothing. Unlisted and failures say why.
	Unknown Result = "Unknown"
	// Terminating means that the CRD is being deleted, with all its objects; nothing
	// is left to migrate.
	Terminating Result = "Terminating"
	// Accepted means that the API server would accept every write of a run: it was a dry run.
	Accepted Result = "Accepted"
	// Planned means that a run would have work: it was a dry run that sent no write.
	Planned Result = "Planned"
	// NoChange means that no object had to be written.
	NoChange Result = "NoChange"
)

// Run says what a run did for one CRD.
type Run struct {
	Name           string `json:"name"`
	StorageVersion string `json:"storageVersion"`
	Result         Result `json:"result"`
	// DryRun means that each write was a dry run, or that none was sent. The skipped objects are those that the API server would
	// accept.
	DryRun bool `json:"dryRun"`
	// Objects is the tally of the last pass over them.
	Objects       render.Objects `json:"objects"`
	ManagedFields ManagedFields  `json:"managedFields"`
	// Requests counts all requests for this CRD: to plan, to wait and to migrate.
	Requests        int64   `json:"requests"`
	DurationSeconds float64 `json:"durationSeconds"`
	Trimmed         bool    `json:"trimmed"`
	// Values says how the run has proven, before its first write, that each value of the objects survives. It is null if the
	// run had no object to write, or was refused before the proof.
	Values *Values `json:"values"`
	// OwnerReferences are those of other objects to the objects of the CRD.
	OwnerReferences OwnerReferences `json:"ownerReferences"`
	// Unlisted says why the API server did not list the objects, where that ended
	// the run.
	Unlisted *Unlisted `json:"unlisted"`
	// Failures names all objects that failed or were deferred, at most 100,000 of each tally, or
	// the CRD for a failure of the whole run.
	Failures []godwit.Failure `json:"failures"`
}

// Values says how a run has proven that each value of the objects survives.
type Values struct {
	// ProvenBy is Schemas (the storage version has each field of the old versions), RoundTrips (a dry run wrote each object through
	// the old versions) or Consent (an old version is not served, and the user gave its values up).
	ProvenBy evidence.ProvenBy `json:"provenBy"`
	// Objects is the number of objects that a dry run wrote.
	Objects int64 `json:"objects"`
	// Accepted are the values that objects lost, as --accept-loss allows.
	Accepted []values.Loss `json:"accepted"`
	// Unproven are old versions that are not served, so that no client sees what their objects have.
	Unproven []string `json:"unproven"`
}

// ValuesOf returns nil if there is no proof.
func ValuesOf(p *evidence.Proof) *Values {
	if p == nil {
		return nil
	}
	return &Values{p.By, p.Objects, render.Present(p.Accepted), render.Present(p.Unproven)}
}

// States of [OwnerReferences].
const (
	// ReferencesNotRead means that the run did not look for ownerReferences.
	ReferencesNotRead = "NotRead"
	// ReferencesUnknown means that some resources could not be read, and that none is left in the others.
	ReferencesUnknown = "Unknown"
	// ReferencesClean means that no ownerReference is left that names a version which is not served.
	ReferencesClean = "Clean"
	// ReferencesStale means that some are left.
	ReferencesStale = "Stale"
)

// OwnerReferences counts objects whose ownerReferences name versions that are not served.
type OwnerReferences struct {
	State string `json:"state"` // NotRead, Unknown, Clean or Stale
	// Repaired objects name the storage version now.
	Repaired int64 `json:"repaired"`
	// Found objects are those that a run without --dry-run would repair.
	Found int64 `json:"found"`
	// Left objects name owners that do not exist, or whose storage version is not served.
	Left int64 `json:"left"`
	// Failed objects could not be written. Failures say why.
	Failed int64 `json:"failed"`
}

// ManagedFields counts the outcomes of objects with stale metadata.managedFields entries.
type ManagedFields struct {
	Cleaned  int64 `json:"cleaned"`
	Deferred int64 `json:"deferred"`
	Failed   int64 `json:"failed"`
}

// Verification says at which versions the objects of one CRD are stored in etcd. A CRD that
// could not be scanned has no item, because its numbers are unknown.
type Verification struct {
	Name           string           `json:"name"`
	StorageVersion string           `json:"storageVersion"`
	Objects        int64            `json:"objects"`
	ByVersion      map[string]int64 `json:"byVersion"`
	Unreadable     int64            `json:"unreadable"`
	// UnreadableWhy and Remedy are for people: why an object is unreadable, and the command
	// that migrates objects at other versions.
	UnreadableWhy string `json:"-"`
	Remedy        string `json:"-"`
}

// Proven reports whether every object was read and is at the storage version.
func (r Verification) Proven() bool {
	return r.Unreadable == 0 && r.ByVersion[r.StorageVersion] == r.Objects
}

// Check says whether one CRD of the next release is safe for the cluster.
type Check struct {
	Name   string `json:"name"`
	Result string `json:"result"` // Safe, Refused, Unsafe or Unknown
	// RemovedVersions are in spec.versions now and not in the next release.
	RemovedVersions []string `json:"removedVersions"`
	// Reasons are sorted by severity. The result of the CRD is the most severe one. Reasons
	// that are Safe are notes.
	Reasons []Finding `json:"reasons"`
	// Steps lead from the CRD of the cluster to that of the next release; null if none are needed, or if the CRD could not
	// be read.
	Steps *Steps `json:"steps"`
	// Source is the file or URL that has the CRD; empty for stdin. It is for formats of pipelines.
	Source string `json:"-"`
}

// Steps are the steps to one CRD of the next release.
type Steps struct {
	// Result is Ready, or Blocked if no steps lead to the release, or they would lose fields. The reasons of the check say why.
	Result bridge.Result `json:"result"`
	// Target is the version at which the steps store the objects; empty if the release has to be corrected first.
	Target string `json:"target"`
	// Kinds are the steps in their order; empty if they are Blocked.
	Kinds []bridge.Kind `json:"kinds"`
}

// ResourceName implements [render.Item].
func (p Plan) ResourceName() string { return resourceName(p.Name) }

// ResourceName implements [render.Item].
func (r Run) ResourceName() string { return resourceName(r.Name) }

// ResourceName implements [render.Item].
func (r Verification) ResourceName() string { return resourceName(r.Name) }

// ResourceName implements [render.Item].
func (c Check) ResourceName() string { return resourceName(c.Name) }

func resourceName(crd string) string { return "customresourcedefinition.apiextensions.k8s.io/" + crd }

// PlanList makes the list that `crd plan` prints.
func PlanList(items []Plan) render.List[Plan] {
	for i := range items {
		p := &items[i]
		p.ServedVersions, p.StoredVersions = render.Present(p.ServedVersions), render.Present(p.StoredVersions)
		p.Blockers, p.Warnings = render.Present(p.Blockers), render.Present(p.Warnings)
	}
	return render.NewList("CRDPlanList", items)
}

// RunList makes the list that `crd run` prints.
func RunList(items []Run) render.List[Run] {
	for i := range items {
		items[i].Failures = render.Present(items[i].Failures)
		items[i].OwnerReferences.State = cmp.Or(items[i].OwnerReferences.State, ReferencesNotRead)
	}
	return render.NewList("CRDRunReportList", items)
}

// VerificationList makes the list that `crd verify` prints.
func VerificationList(items []Verification) render.List[Verification] {
	for i := range items {
		if items[i].ByVersion == nil {
			items[i].ByVersion = map[string]int64{}
		}
	}
	return render.NewList("CRDVerifyReportList", items)
}

// NewCheck returns a check with its steps, and without its reasons.
func NewCheck(c releasecheck.Check, b bridge.Bridge) Check {
	item := Check{Name: c.Name, Result: string(c.Result), RemovedVersions: c.RemovedVersions}
	if b.Result != bridge.Ready && b.Result != bridge.Blocked {
		return item
	}
	item.Steps = &Steps{Result: b.Result, Target: b.Target, Kinds: []bridge.Kind{}}
	for _, s := range b.Steps {
		item.Steps.Kinds = append(item.Steps.Kinds, s.Kind)
	}
	return item
}

// CheckList makes the list that `crd check` prints.
func CheckList(items []Check) render.List[Check] {
	for i := range items {
		c := &items[i]
		c.RemovedVersions, c.Reasons = render.Present(c.RemovedVersions), render.Present(c.Reasons)
	}
	return render.NewList("CRDCheckList", items)
}

// Finding is a [releasecheck.Finding] with its fix in words.
type Finding struct {
	// Result is the result that this finding alone leads to. A Safe finding is a note.
	Result releasecheck.Result `json:"result"`
	render.Problem
}

// NewFinding returns a finding of a check with its fix in words.
func NewFinding(f releasecheck.Finding, w remedy.Writer) Finding {
	return Finding{f.Result, render.NewProblem(f.Finding, w)}
}
