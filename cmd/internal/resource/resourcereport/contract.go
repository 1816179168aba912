// Package resourcereport is the output of `godwit resource`: its JSON contract, and its tables for people. It is
// pure: values in, text out. It has names of resources and objects, and nothing of their content.
//
// Read contract.go, then text.go.
package resourcereport

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Plan says what a run would do with one resource.
type Plan struct {
	// Name is the resource with its group, as kubectl takes it, or the argument where there is no such resource.
	Name string `json:"name"`
	// Version is the one at which objects are written; empty where it is not known.
	Version string `json:"version"`
	State   string `json:"state"` // Clean, Ready, Blocked or Unknown
	// Objects is null if they were not counted.
	Objects  *int64           `json:"objects"`
	Blockers []render.Problem `json:"blockers"`
}

// Result is the result of a run for one resource.
type Result string

const (
	// Succeeded means that every object was written, or had nothing to be written.
	Succeeded Result = "Succeeded"
	// Accepted means that the API server would accept every write of a run: it was a dry run.
	Accepted Result = "Accepted"
	// NoChange means that the API server changed no object in etcd.
	NoChange Result = "NoChange"
	// Partial means that some objects are left. Failures say why.
	Partial Result = "Partial"
	// Failed means that an error ended the run before its first write. Failures say why.
	Failed Result = "Failed"
	// Blocked means that the run was refused and wrote nothing. Failures say why.
	Blocked Result = "Blocked"
)

// Run says what a run did with one resource.
type Run struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Result  Result `json:"result"`
	// DryRun means that each write was a dry run: the skipped objects are those that the API server would accept.
	DryRun bool `json:"dryRun"`
	// Objects counts outcomes. Unchanged objects were current in etcd already.
	Objects         render.Objects `json:"objects"`
	DurationSeconds float64        `json:"durationSeconds"`
	// Failures names all objects that failed or were deferred, at most 100,000, or the resource for a failure of the whole run.
	Failures []godwit.Failure `json:"failures"`
}

// Outcome says what etcd proves.
type Outcome string

const (
	// Proven means that every object is stored as expected.
	Proven Outcome = "Proven"
	// Uniform means that every object is stored in the same form, and that no form was expected.
	Uniform Outcome = "Uniform"
	// NotProven means that objects are stored in other forms, or can't be read.
	NotProven Outcome = "NotProven"
	// NotVerified means that etcd was not read, so that nothing is known.
	NotVerified Outcome = "NotVerified"
)

// Verification says how the objects of one resource are stored in etcd.
type Verification struct {
	Name string `json:"name"`
	// Result is Proven, Uniform, NotProven or NotVerified.
	Result Outcome `json:"result"`
	// Expected is the form that the user gave; empty for none.
	Expected string `json:"expected"`
	Objects  int64  `json:"objects"`
	// ByForm counts objects by what kube-apiserver writes in front of an encrypted one, or by apiVersion.
	ByForm     map[string]int64 `json:"byForm"`
	Unreadable int64            `json:"unreadable"`
	// Message and Remedy are for people.
	Message string `json:"-"`
	Remedy  string `json:"-"`
}

// ResourceName implements [render.Item].
func (p Plan) ResourceName() string { return p.Name }

// ResourceName implements [render.Item].
func (r Run) ResourceName() string { return r.Name }

// ResourceName implements [render.Item].
func (v Verification) ResourceName() string { return v.Name }

// PlanList makes the list that `resource plan` prints.
func PlanList(items []Plan) render.List[Plan] {
	for i := range items {
		items[i].Blockers = render.Present(items[i].Blockers)
	}
	return render.NewList("ResourcePlanList", items)
}

// RunList makes the list that `resource run` prints.
func RunList(items []Run) render.List[Run] {
	for i := range items {
		items[i].Failures = render.Present(items[i].Failures)
	}
	return render.NewList("ResourceRunReportList", items)
}

// VerificationList makes the list that `resource verify` prints.
func VerificationList(items []Verification) render.List[Verification] {
	for i := range items {
		if items[i].ByForm == nil {
			items[i].ByForm = map[string]int64{}
		}
	}
	return render.NewList("ResourceVerifyReportList", items)
}
