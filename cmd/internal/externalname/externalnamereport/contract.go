// Package externalnamereport is the output of `godwit externalname`: its JSON contract, and its tables
// and sums for people. It is pure: values in, text out.
//
// Read contract.go, then plan.go, run.go and ready.go.
package externalnamereport

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

// Plan says what `externalname run` would do with one managed resource.
type Plan struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Class     fleet.Class `json:"class"`
	// Form is how a Legacy name is written.
	Form     string `json:"form"`
	Current  string `json:"current"`
	Proposed string `json:"proposed"`
	// Owner is the field manager of the current name.
	Owner  string       `json:"owner"`
	Action fleet.Action `json:"action"`
	render.Problem
	// SourcePatch is a manifest with the new name, for the source of a name that a GitOps tool or a
	// Composition owns.
	SourcePatch string `json:"sourcePatch"`

	resource string
}

// ResourceName names the managed resource.
func (p Plan) ResourceName() string { return p.resource + "/" + p.Name }

// Run is the result of one managed resource.
type Run struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Phase     fleet.Phase `json:"phase"`
	Before    string      `json:"before"`
	After     string      `json:"after"`
	render.Problem

	resource string
}

// ResourceName names the managed resource.
func (r Run) ResourceName() string { return r.resource + "/" + r.Name }

// Kinds of the lists.
const (
	planKind = "ExternalNamePlanList"
	runKind  = "ExternalNameRunList"
)

// PlanList returns the list of a plan.
func PlanList(kind fleet.Kind, items []fleet.Item, w remedy.Writer) render.List[Plan] {
	all, resource := make([]Plan, len(items)), kind.Resource.GroupResource().String()
	for i, one := range items {
		all[i] = Plan{
			Kind: kind.Kind, Namespace: one.Namespace, Name: one.Name, Class: one.Class, Form: one.Form, Current: one.Current, Proposed: one.Proposed,
			Owner: one.Owner.Manager, Action: one.Action, Problem: problemOf(one, w), SourcePatch: one.SourcePatch,
			resource: resource,
		}
	}
	return render.NewList(planKind, all)
}

// RunList returns the list of a run.
func RunList(kind fleet.Kind, results []fleet.Result, w remedy.Writer) render.List[Run] {
	all, resource := make([]Run, len(results)), kind.Resource.GroupResource().String()
	for i, one := range results {
		all[i] = Run{
			Kind: kind.Kind, Namespace: one.Namespace, Name: one.Name, Phase: one.Phase, Before: one.Current, After: after(one),
			Problem: problemOf(one.Item, w), resource: resource,
		}
	}
	return render.NewList(runKind, all)
}

// after returns the name after the run.
func after(one fleet.Result) string {
	switch one.Phase {
	case fleet.PhaseRenamed, fleet.PhaseRolledBack, fleet.PhaseRestored, fleet.PhaseHandedOver:
		return one.Proposed
	}
	return one.Current
}

// problemOf returns the problem of a finding, with the fix of the library or that of the reason.
func problemOf(i fleet.Item, w remedy.Writer) render.Problem {
	f := godwit.Finding{Reason: i.Reason, Message: i.Message, Fix: i.Fix}
	if len(i.Fix) == 0 && i.Reason != nil && i.Reason.UserAction {
		f.Fix = i.Reason.Fix
	}
	return render.NewProblem(f, w)
}
