package revision

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unique"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// pass is a run over a scope with its results. It keeps only the fields of each revision that the report prints,
// because a cluster has tens of thousands.
type pass struct {
	session   *session
	remedies  remedy.Writer
	rows      []row           // of revisions that are not at the target version, in order
	others    revision.Counts // of the other revisions
	counts    revision.Counts
	counted   bool     // a pass of the run has ended
	todo      []string // the namespaces in which revisions are to be upgraded
	begins    int      // how many of them there are
	inventory *revision.Inventory
	err       error
	times     map[time.Time]*time.Time
}

// row is the result of one revision: its names, and an outcome that equal rows share in memory.
type row struct {
	name, owner, replacement string
	shared                   unique.Handle[outcome]
}

// outcome has the fields that many rows share.
type outcome struct {
	run    revisionreport.Run // without the names of a row
	action decision.Action
	phase  revision.Phase
	begun  bool // an upgrade has created the new revision, a rollback has marked the old one
}

func (p *pass) newRow(r revision.Result) row {
	return p.rowOf(r, revisionreport.NewRun(r, p.remedies))
}

// rowOf returns the row of a result, which reports print in a given form.
func (p *pass) rowOf(r revision.Result, run revisionreport.Run) row {
	one := row{name: run.Name, owner: run.Owner.Name, replacement: run.Replacement}
	run.Name, run.Owner.Name, run.Replacement = "", "", ""
	run.RetainedUntil = p.time(run.RetainedUntil)
	one.shared = unique.Make(outcome{run: run, action: r.Action, phase: r.Phase, begun: r.ReplacementUID != ""})
	return one
}

func (one row) outcome() outcome { return one.shared.Value() }

// result is the row as reports print it.
func (one row) result() revisionreport.Run {
	run := one.outcome().run
	run.Name, run.Owner.Name, run.Replacement = one.name, one.owner, one.replacement
	return run
}

// results yields all rows as reports print them.
func (p *pass) results(yield func(revisionreport.Run) bool) {
	for _, one := range p.rows {
		if !yield(one.result()) {
			return
		}
	}
}

// compare is the order of rows.
func (one row) compare(namespace, name string) int {
	return cmp.Or(cmp.Compare(one.outcome().run.Namespace, namespace), cmp.Compare(one.name, name))
}

// time returns one pointer for equal times: the times of a report are in whole seconds.
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

// plan adds an item of the scan before the run, in the order of namespaces and names.
func (p *pass) plan(i decision.Item) {
	r := revision.Result{Item: i}
	if i.Reason == decision.ReasonRetained {
		r.Phase = revision.Retained
	}
	if i.Action == decision.Upgrade || i.Action == decision.Relabel {
		p.begins++
		if n := len(p.todo); n == 0 || p.todo[n-1] != i.Namespace {
			p.todo = append(p.todo, i.Namespace)
		}
	}
	one := p.newRow(r)
	if one.outcome().isAtTarget() {
		p.others.Add(r.Action, r.Phase)
		return
	}
	p.rows = append(p.rows, one)
}

// isAtTarget reports whether a revision is at the target version, so that it is only counted and has no row. An unreferenced one at an
// old version has a reason.
func (o outcome) isAtTarget() bool {
	return (o.action == decision.UpToDate || o.action == decision.Unreferenced && o.run.Reason == "") && o.phase != revision.Retained
}

// run makes one pass.
func (p *pass) run(ctx context.Context) {
	var total revision.Report
	u := update{pass: p, found: make([]bool, len(p.rows))}
	total, p.err = p.session.Run(ctx, p.session.scope.scope(), u.add)
	u.end()
	p.tally()
	p.countRun(total.Counts)
	if p.err == nil && p.session.scope.isWholeCluster() {
		var after revision.Inventory
		if after, p.err = p.session.InventoryEach(ctx, p.dangling); p.err == nil {
			p.inventory = &after
		}
	}
}

// update is what one pass finds and does.
type update struct {
	*pass
	found []bool // which rows it has found
	late  []row  // of revisions that were created since the plan
}

func (u *update) add(r revision.Result) {
	at, planned := u.find(r.Namespace, r.Name)
	if planned {
		u.rows[at], u.found[at] = u.newRow(r), true
	} else if one := u.newRow(r); r.Phase != "" || !one.outcome().isAtTarget() {
		u.late = append(u.late, one)
	}
}

// end drops the rows of revisions that a complete pass did not find, and to which no object refers: another client deleted
// them, as with their owner. What has ended remains in the report.
func (u *update) end() {
	if u.err == nil {
		kept := u.rows[:0]
		for at, one := range u.rows {
			if u.found[at] || one.outcome().phase.Ended() {
				kept = append(kept, one)
			}
		}
		u.rows = kept
	}
	u.rows = append(u.rows, u.late...)
}

func (p *pass) find(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(p.rows, name, func(one row, name string) int { return one.compare(namespace, name) })
}

// dangling adds references to missing revisions that were written meanwhile, even to a revision that this run has
// deleted.
func (p *pass) dangling(i decision.Item) error {
	if i.Reason != decision.ReasonSourceGone {
		return nil
	}
	now := p.newRow(revision.Result{Item: i})
	switch at, found := p.find(i.Namespace, i.Name); {
	case !found:
		p.rows = slices.Insert(p.rows, at, now)
	case p.rows[at].outcome().phase == revision.Succeeded:
		p.rows[at] = now
		p.counts.Succeeded, p.counts.Discovered = p.counts.Succeeded-1, p.counts.Discovered-1
	default:
		return nil
	}
	p.counts.Add(i.Action, "")
	return nil
}

// countRun sets the counts of the run. The first pass finds more than the plan before it. A later pass finds revisions
// that earlier passes created or ended, so the counts come from the rows.
func (p *pass) countRun(last revision.Counts) {
	if p.err == nil && !p.counted {
		p.counts, p.counted = last, true
	}
}

// tally counts all revisions, and keeps rows of those that are not at the target version, in order.
func (p *pass) tally() {
	slices.SortStableFunc(p.rows, func(a, b row) int { return a.compare(b.outcome().run.Namespace, b.name) })
	p.rows = slices.DeleteFunc(p.rows, func(one row) bool {
		of := one.outcome()
		if of.isAtTarget() {
			p.others.Add(of.action, of.phase)
		}
		return of.isAtTarget()
	})
	p.counts = p.others
	for _, one := range p.rows {
		of := one.outcome()
		p.counts.Add(of.action, of.phase)
	}
}

func (p *pass) report() revisionreport.RunReport {
	r := revisionreport.NewRunReport(p.results)
	r.Counts = p.counts
	if p.inventory != nil {
		r.DroppableVersions = p.inventory.Droppable
	}
	return r
}

// retainedRevisions returns the number of revisions that a later run deletes, and when it can delete the last one: the
// old revisions after an upgrade, the new ones after a rollback.
func (p *pass) retainedRevisions(phase revision.Phase) (n int64, until time.Time) {
	for _, one := range p.rows {
		if of := one.outcome(); of.phase == phase && of.run.RetainedUntil != nil {
			if n++; of.run.RetainedUntil.After(until) {
				until = *of.run.RetainedUntil
			}
		}
	}
	return n, until
}

// unconfirmed counts the revisions that may be missing: the scan could not confirm it.
func (p *pass) unconfirmed() (n int64) {
	for _, one := range p.rows {
		if one.outcome().run.Reason == decision.ReasonUnconfirmed.Name {
			n++
		}
	}
	return n
}
