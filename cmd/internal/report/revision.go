package report

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// RevisionPlanList is what `revision plan` and `revision status` print.
type RevisionPlanList struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Items      []RevisionPlan `json:"items"`
	// VersionCounts counts what was found by version and form.
	VersionCounts []revision.VersionCount `json:"versionCounts"`
	// DroppableVersions is null when not the whole cluster was looked at.
	DroppableVersions []string `json:"droppableVersions"`
	// VersionsInUse are those that can't be dropped, and what holds them; null as
	// well.
	VersionsInUse []revision.VersionUse `json:"versionsInUse"`
}

// RevisionPlan says what is to be done about one revision.
type RevisionPlan struct {
	Namespace  string                     `json:"namespace"`
	Name       string                     `json:"name"`
	UID        types.UID                  `json:"uid"`
	Owner      reference.Owner            `json:"owner"`
	Version    string                     `json:"version"`
	Form       string                     `json:"form"`
	Target     string                     `json:"target"`
	Action     revision.Action            `json:"action"`
	State      RevisionState              `json:"state"`
	References []revision.ReferenceStatus `json:"references"`
	Losses     []string                   `json:"losses"`
	Reason     string                     `json:"reason"`
	Message    string                     `json:"message"`
	// Remedy is what to do, with commands where there are; empty where there is nothing to do.
	Remedy string `json:"remedy"`
	// Replacement is the revision that is to take its place, once there is one.
	Replacement string `json:"replacement"`
	// RetainedUntil is null where nothing is retained, or for good.
	RetainedUntil *time.Time `json:"retainedUntil"`
}

// RevisionRunReport is what `revision run` and `revision rollback` print.
type RevisionRunReport struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Counts     revision.Counts `json:"counts"`
	// Items are the revisions that were not at the target.
	Items []*RevisionRun `json:"items"`
	// DroppableVersions is null when not the whole cluster was looked at.
	DroppableVersions []string `json:"droppableVersions"`
	DurationSeconds   float64  `json:"durationSeconds"`
}

// RevisionRun says what became of one revision.
type RevisionRun struct {
	Namespace   string          `json:"namespace"`
	Name        string          `json:"name"`
	Owner       reference.Owner `json:"owner"`
	Phase       RevisionState   `json:"phase"`
	Replacement string          `json:"replacement"`
	Reason      string          `json:"reason"`
	Message     string          `json:"message"`
	// Remedy is what to do, with commands where there are; empty where there is nothing to do.
	Remedy        string     `json:"remedy"`
	RetainedUntil *time.Time `json:"retainedUntil"`
}

// NewRevisionRun says what became of one revision. Commands in the remedy have the flags
// that lead to their cluster.
func NewRevisionRun(one revision.Result, flags string) RevisionRun {
	r := RevisionRun{
		Namespace: one.Namespace, Name: one.Name, Owner: one.Owner, Phase: stateOf(one), Replacement: one.Replacement,
		Reason: one.Reason, Message: one.Message, Remedy: remedy.For(one.Item, flags).Command,
	}
	if one.Phase == revision.Retained || one.Phase == revision.RolledBack { // otherwise it is gone, or was never given up
		r.RetainedUntil = orNull(one.Until)
	}
	return r
}

// remedied reports whether a message, and what to do, is printed for a revision.
func (r RevisionRun) remedied() bool {
	return r.Message != "" && r.RetainedUntil == nil && r.Phase != StateRetained
}

// NewRevisionPlanList makes the list of what was found. Without a survey nothing is
// said about versions. Commands in remedies have the flags that lead to their cluster.
func NewRevisionPlanList(items []revision.Item, survey *revision.Inventory, flags string) RevisionPlanList {
	l := RevisionPlanList{APIVersion: APIVersion, Kind: "RevisionPlanList", Items: []RevisionPlan{}, VersionCounts: censusOf(items)}
	for _, i := range items {
		l.Items = append(l.Items, RevisionPlan{
			Namespace: i.Namespace, Name: i.Name, UID: i.UID, Owner: i.Owner, Version: i.Version, Form: i.Form, Target: i.Target,
			Action: i.Action, State: stateOf(revision.Result{Item: i}), References: present(i.References), Losses: present(i.Losses), Reason: i.Reason, Message: i.Message, Remedy: remedy.For(i, flags).Command,
			Replacement: i.Replacement, RetainedUntil: orNull(i.Until),
		})
	}
	if survey != nil {
		l.DroppableVersions, l.VersionsInUse = present(survey.Droppable), present(survey.InUse)
	}
	return l
}

// NewRevisionRunReport makes the report of what was done.
func NewRevisionRunReport(items []*RevisionRun) RevisionRunReport {
	return RevisionRunReport{APIVersion: APIVersion, Kind: "RevisionRunReport", Items: present(items)}
}

// Names are those of the items, as kubectl writes and reads them.
func (l RevisionPlanList) Names() []string {
	names := make([]string, len(l.Items))
	for i, item := range l.Items {
		names[i] = revisionName(item.Name)
	}
	return names
}

// Names are those of the items, as kubectl writes and reads them.
func (r RevisionRunReport) Names() []string {
	names := make([]string, len(r.Items))
	for i, item := range r.Items {
		names[i] = revisionName(item.Name)
	}
	return names
}

func revisionName(name string) string { return "controllerrevision.apps/" + name }

// censusOf counts what says at which version it is.
func censusOf(items []revision.Item) []revision.VersionCount {
	counts := map[revision.VersionCount]int64{}
	for _, i := range items {
		if i.Version != "" {
			counts[revision.VersionCount{Version: i.Version, Form: i.Form}]++
		}
	}
	census := make([]revision.VersionCount, 0, len(counts))
	for c, n := range counts {
		c.Count = n
		census = append(census, c)
	}
	slices.SortFunc(census, func(a, b revision.VersionCount) int {
		return strings.Compare(a.Version+"/"+a.Form, b.Version+"/"+b.Form)
	})
	return census
}

// orNull is in UTC and in whole seconds, as everything in Kubernetes.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC().Truncate(time.Second)
	return &utc
}
