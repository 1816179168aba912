package revision

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/report/revisionreport"
	"github.com/godwit-dev/godwit/revision"
)

// pass is a run over a scope with its results. It keeps only what the report prints of each
// revision, since a cluster has tens of thousands.
type pass struct {
	session   *session
	remedies  remedy.Writer
	rows      []*row          // of revisions that are not at the target version, in order
	others    revision.Counts // of the other revisions
	counts    revision.Counts
	counted   bool     // a pass of the run has ended
	todo      []string // the namespaces in which revisions are to be upgraded
	begins    int      // how many of them there are
	inventory *revision.Inventory
	err       error
	texts     map[string]string // equal texts are kept once
	times     map[time.Time]*time.Time
}

// row is the result of one revision.
type row struct {
	printed revisionreport.Run
	action  revision.Action
	phase   revision.Phase
	begun   bool // an upgrade has created the new revision, a rollback has marked the old one
}

func (p *pass) newRow(r revision.Result) *row {
	one := &row{printed: revisionreport.NewRun(r, p.remedies), action: r.Action, phase: r.Phase, begun: r.ReplacementUID != ""}
	one.printed.Namespace, one.printed.Owner.Kind = p.text(one.printed.Namespace), p.text(one.printed.Owner.Kind)
	one.printed.Message, one.printed.Remedy = p.text(one.printed.Message), p.text(one.printed.Remedy)
	one.printed.RetainedUntil = p.time(one.printed.RetainedUntil)
	return one
}

// time keeps equal times once: those of a report are in whole seconds.
func (p *pass) time(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	known := p.times[*t]
	if known == nil {
		if p.times == nil {
			p.times = map[time.Time]*time.Time{}
		}
		known, p.times[*t] = t, t
	}
	return known
}

func (p *pass) text(s string) string {
	if known, ok := p.texts[s]; ok {
		return known
	}
	if p.texts == nil {
		p.texts = map[string]string{}
	}
	p.texts[s] = s
	return s
}

// plan adds an item of the scan before the run, in the order of namespaces and names.
func (p *pass) plan(i revision.Item) {
	r := revision.Result{Item: i}
	if i.Reason == revision.ReasonRetained {
		r.Phase = revision.Retained
	}
	if i.Action == revision.Upgrade || i.Action == revision.Relabel {
		p.begins++
		if n := len(p.todo); n == 0 || p.todo[n-1] != i.Namespace {
			p.todo = append(p.todo, p.text(i.Namespace))
		}
	}
	one := p.newRow(r)
	if one.atTarget() {
		p.others.Add(one.action, one.phase)
		return
	}
	p.rows = append(p.rows, one)
}

// atTarget reports whether a revision is only counted, and has no row.
func (one *row) atTarget() bool {
	return (one.action == revision.UpToDate || one.action == revision.Unreferenced) && one.phase != revision.Retained
}

// run makes one pass.
func (p *pass) run(ctx context.Context) {
	var total revision.Report
	var late []*row // of revisions that were created since the plan
	total, p.err = p.session.Run(ctx, p.session.scope.scope(), func(r revision.Result) {
		if at, planned := p.find(r.Namespace, r.Name); planned {
			p.rows[at] = p.newRow(r)
		} else {
			late = append(late, p.newRow(r))
		}
	})
	p.rows = append(p.rows, late...)
	p.tally()
	p.countRun(total.Counts)
	if p.err == nil && p.session.scope.whole() {
		var after revision.Inventory
		if after, p.err = p.session.InventoryEach(ctx, p.dangling); p.err == nil {
			p.inventory = &after
		}
	}
}

func (p *pass) find(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(p.rows, revisionreport.Run{Namespace: namespace, Name: name}, func(one *row, by revisionreport.Run) int {
		return cmp.Or(cmp.Compare(one.printed.Namespace, by.Namespace), cmp.Compare(one.printed.Name, by.Name))
	})
}

// dangling adds references that were written meanwhile to a revision that is gone, also to one
// that this run has deleted.
func (p *pass) dangling(i revision.Item) error {
	if i.Reason != revision.ReasonSourceGone {
		return nil
	}
	now := p.newRow(revision.Result{Item: i})
	switch at, found := p.find(i.Namespace, i.Name); {
	case !found:
		p.rows = slices.Insert(p.rows, at, now)
	case p.rows[at].phase == revision.Succeeded:
		p.rows[at] = now
		p.counts.Succeeded, p.counts.Discovered = p.counts.Succeeded-1, p.counts.Discovered-1
	default:
		return nil
	}
	p.counts.Add(now.action, now.phase)
	return nil
}

// countRun makes the counts of the run. The first pass finds more than the plan before it. A later
// pass finds revisions that earlier passes created or ended, so that the rows have the counts.
func (p *pass) countRun(last revision.Counts) {
	if p.err == nil && !p.counted {
		p.counts, p.counted = last, true
	}
}

// tally counts all revisions, and keeps rows of those that are not at the target version, in order.
func (p *pass) tally() {
	slices.SortStableFunc(p.rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.printed.Namespace, b.printed.Namespace), cmp.Compare(a.printed.Name, b.printed.Name))
	})
	p.rows = slices.DeleteFunc(p.rows, func(one *row) bool {
		if one.atTarget() {
			p.others.Add(one.action, one.phase)
		}
		return one.atTarget()
	})
	p.counts = p.others
	for _, one := range p.rows {
		p.counts.Add(one.action, one.phase)
	}
}

func (p *pass) report() revisionreport.RunReport {
	items := make([]*revisionreport.Run, len(p.rows))
	for i, one := range p.rows {
		items[i] = &one.printed
	}
	r := revisionreport.NewRunReport(items)
	r.Counts = p.counts
	if p.inventory != nil {
		r.DroppableVersions = p.inventory.Droppable
	}
	return r
}

// kept counts the revisions that a later run deletes, and says when it can delete the last one:
// the old revisions after an upgrade, the new ones after a rollback.
func (p *pass) kept(phase revision.Phase) (n int64, until time.Time) {
	for _, one := range p.rows {
		if one.phase == phase && one.printed.RetainedUntil != nil {
			if n++; one.printed.RetainedUntil.After(until) {
				until = *one.printed.RetainedUntil
			}
		}
	}
	return n, until
}

// unconfirmed counts the revisions of which the scan did not find out whether they are missing.
func (p *pass) unconfirmed() (n int64) {
	for _, one := range p.rows {
		if one.printed.Reason == revision.ReasonUnconfirmed {
			n++
		}
	}
	return n
}
