// Package revisionreport is the output of `godwit revision`: its JSON contract, and its tables
// and sums for people. It is pure: values in, text out.
//
// Read contract.go and state.go, then the files named after the commands.
package revisionreport

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// PlanList is what `revision plan` and `revision status` print.
type PlanList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	render.Provenance
	Items []Plan `json:"items"`
	// VersionCounts counts revisions by version and form.
	VersionCounts []revision.VersionCount `json:"versionCounts"`
	// DroppableVersions is null if the command did not read the whole cluster.
	DroppableVersions []string `json:"droppableVersions"`
	// VersionsInUse are the versions that cannot be dropped, and their users. It is null if
	// the command did not read the whole cluster.
	VersionsInUse []revision.VersionUse `json:"versionsInUse"`
}

// Plan says what a run would do with one revision.
type Plan struct {
	Namespace  string                     `json:"namespace"`
	Name       string                     `json:"name"`
	UID        types.UID                  `json:"uid"`
	Owner      reference.Owner            `json:"owner"`
	Version    string                     `json:"version"`
	Form       string                     `json:"form"`
	Target     string                     `json:"target"`
	Action     decision.Action            `json:"action"`
	State      State                      `json:"state"`
	References []decision.ReferenceStatus `json:"references"`
	Losses     []string                   `json:"losses"`
	render.Problem
	// AtRisk means that KubeVirt v1.5 or later deletes the revision when it starts, although the
	// spec of a VirtualMachine names it.
	AtRisk bool `json:"atRisk"`
	// SharedBy are other VirtualMachines that name the revision, as KIND/NAME. They lose it when the
	// owner is deleted.
	SharedBy []string `json:"sharedBy"`
	// Replacement is the new revision; empty before it is created.
	Replacement string `json:"replacement"`
	// RetainedUntil is null if no revision is retained, or if it is retained without a limit.
	RetainedUntil *time.Time `json:"retainedUntil"`
}

// RunReport is what `revision run` and `revision rollback` print.
type RunReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	render.Provenance
	Counts revision.Counts `json:"counts"`
	// Items are the revisions that were not at the target version.
	Items Runs `json:"items"`
	// DroppableVersions is null if the command did not read the whole cluster.
	DroppableVersions []string `json:"droppableVersions"`
	DurationSeconds   float64  `json:"durationSeconds"`
}

// Run is the result of one revision.
type Run struct {
	Namespace   string          `json:"namespace"`
	Name        string          `json:"name"`
	Owner       reference.Owner `json:"owner"`
	Phase       State           `json:"phase"`
	Replacement string          `json:"replacement"`
	render.Problem
	RetainedUntil *time.Time `json:"retainedUntil"`
}

// NewRun returns the result of one revision.
func NewRun(one revision.Result, w remedy.Writer) Run {
	r := Run{
		Namespace: one.Namespace, Name: one.Name, Owner: one.Owner, Phase: stateOf(one), Replacement: one.Replacement,
		Problem: problemOf(one.Item, w),
	}
	if one.Phase == revision.Retained || one.Phase == revision.RolledBack { // otherwise the old revision is deleted, or is still in use
		r.RetainedUntil = orNull(one.Until)
	}
	return r
}

func problemOf(i decision.Item, w remedy.Writer) render.Problem {
	return render.NewProblem(godwit.Finding{Reason: i.Reason, Message: i.Message, Fix: i.Fix()}, w)
}

// remedied reports whether text output shows the message and the remedy of a revision.
func (r Run) remedied() bool {
	return r.Message != "" && (r.overdue() || r.RetainedUntil == nil && r.Phase != StateRetained)
}

// overdue reports whether an unreferenced old revision is kept for another reason than its retention or the policy.
func (r Run) overdue() bool {
	switch r.Reason {
	case "", decision.ReasonRetained.Name, decision.ReasonKept.Name, decision.ReasonRolledBack.Name:
		return false
	}
	return r.Phase == StateRetained || r.Phase == StateRolledBack
}

// NewPlanList returns the list of a plan. Without an inventory, it has no versions.
func NewPlanList(items []decision.Item, inventory *revision.Inventory, w remedy.Writer) PlanList {
	l := PlanList{APIVersion: render.APIVersion, Kind: "RevisionPlanList", Items: []Plan{}, VersionCounts: versionCounts(items)}
	for _, i := range items {
		l.Items = append(l.Items, Plan{
			Namespace: i.Namespace, Name: i.Name, UID: i.UID, Owner: i.Owner, Version: i.Version, Form: i.Form, Target: i.Target,
			Action: i.Action, State: stateOf(revision.Result{Item: i}), References: render.Present(i.References), Losses: render.Present(i.Losses), Problem: problemOf(i, w),
			AtRisk: i.AtRisk, SharedBy: render.Present(i.SharedBy), Replacement: i.Replacement, RetainedUntil: orNull(i.Until),
		})
	}
	if inventory != nil {
		l.DroppableVersions, l.VersionsInUse = render.Present(inventory.Droppable), render.Present(inventory.InUse)
	}
	return l
}

// Runs is a sequence of results; nil means none. Each result is created when it is read: a cluster has tens of
// thousands.
type Runs iter.Seq[Run]

// All yields each result.
func (r Runs) All() iter.Seq[Run] {
	if r == nil {
		return func(func(Run) bool) {}
	}
	return iter.Seq[Run](r)
}

// MarshalJSON makes a list of all results. Encode leaves < and > as they are.
func (r Runs) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	err := render.Encode(&text, render.Present(slices.Collect(r.All())))
	return text.Bytes(), err
}

// UnmarshalJSON reads a list.
func (r *Runs) UnmarshalJSON(text []byte) error {
	var all []Run
	err := json.Unmarshal(text, &all)
	*r = Runs(slices.Values(all))
	return err
}

// Names returns the resource name of each revision.
func (r Runs) Names() []string { return render.NamesOf(slices.Collect(r.All())) }

// NewRunReport returns the report of a run; nil means no results.
func NewRunReport(items iter.Seq[Run]) RunReport {
	return RunReport{APIVersion: render.APIVersion, Kind: "RevisionRunReport", Items: Runs(items)}
}

// EncodeJSON implements [render.Encoder].
func (r RunReport) EncodeJSON(w io.Writer) error {
	items := r.Items.All()
	r.Items = nil
	type envelope RunReport // without EncodeJSON
	return render.EncodeItems(w, envelope(r), items)
}

// ResourceName implements [render.Item].
func (p Plan) ResourceName() string { return resourceName(p.Name) }

// ResourceName implements [render.Item].
func (r Run) ResourceName() string { return resourceName(r.Name) }

func resourceName(revision string) string { return "controllerrevision.apps/" + revision }

// versionCounts counts the revisions with a known version.
func versionCounts(items []decision.Item) []revision.VersionCount {
	counts := map[revision.VersionCount]int64{}
	for _, i := range items {
		if i.Version != "" {
			counts[revision.VersionCount{Version: i.Version, Form: i.Form}]++
		}
	}
	all := make([]revision.VersionCount, 0, len(counts))
	for c, n := range counts {
		c.Count = n
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b revision.VersionCount) int {
		return strings.Compare(a.Version+"/"+a.Form, b.Version+"/"+b.Form)
	})
	return all
}

// orNull returns a time in UTC and in whole seconds, as in Kubernetes.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC().Truncate(time.Second)
	return &utc
}

// WithProvenance implements [render.Evidence].
func (l PlanList) WithProvenance(made render.Provenance) any {
	l.Provenance = made
	return l
}

// WithProvenance implements [render.Evidence].
func (r RunReport) WithProvenance(made render.Provenance) any {
	r.Provenance = made
	return r
}
