package revision

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision/decision"
)

// Counts is an exact tally of the revisions of a scope.
type Counts struct {
	Discovered   int64 `json:"discovered"`
	UpToDate     int64 `json:"upToDate"`
	Relabelled   int64 `json:"relabelled"`
	Pending      int64 `json:"pending"`
	Deferred     int64 `json:"deferred"`
	InUse        int64 `json:"inUse"`
	Retained     int64 `json:"retained"`
	Blocked      int64 `json:"blocked"`
	Unreferenced int64 `json:"unreferenced"`
	Failed       int64 `json:"failed"`
	Succeeded    int64 `json:"succeeded"`
	RolledBack   int64 `json:"rolledBack"`
}

// Report is the result of a run over a scope.
type Report struct {
	Counts Counts
	// Failures are the first that need user action, with the reason.
	Failures []godwit.Failure
	// Complete means that every revision of the scope was scanned, and each that is missing was
	// confirmed to be.
	Complete bool
}

// maxFailures that a report names.
const maxFailures = 20

// upgradesAtOnce bounds the upgrades that Run has under way in all namespaces, with the data of
// their revisions: while one namespace is scanned, others write.
const upgradesAtOnce = 2 * batchSize

// weight is the part of upgradesAtOnce that a namespace takes: one batch of it is under way. A namespace with more than
// upgradesAtOnce upgrades takes all of it, because its index takes several kilobytes of each object.
func weight(upgrades int) int {
	if upgrades > upgradesAtOnce {
		return upgradesAtOnce
	}
	return min(max(upgrades, 1), batchSize)
}

// Run upgrades what can be upgraded now, and reports what it found and did. Each, if given, is
// called with every revision that was not at the target, one namespace after the other, also with
// those that are not upgraded: they have no phase. An error ends the run when the namespaces that
// it has begun are done.
func (u *Upgrader) Run(ctx context.Context, s Scope, each func(Result)) (Report, error) {
	var r runner
	turns := make(chan struct{}, upgradesAtOnce)
	var all sync.WaitGroup
	for found, err := range u.snapshots(ctx, s) {
		if err != nil {
			r.fail(err)
			break
		}
		requests := found.requests()
		weight := weight(len(requests))
		for range weight {
			turns <- struct{}{}
		}
		if r.failed() {
			break
		}
		all.Go(func() {
			defer func() {
				for range weight {
					<-turns
				}
			}()
			items, results, err := u.upgradeAll(ctx, found, s, requests)
			r.add(items, results, each)
			r.fail(err)
		})
	}
	all.Wait()
	r.report.Complete = r.err == nil && r.unconfirmed == 0
	return r.report, r.err
}

// upgradeAll takes the upgrades of a namespace as far as they can go now, and then repoints the pins in scope that other software
// has left behind meanwhile, also of revisions that were not to be upgraded yet.
func (u *Upgrader) upgradeAll(ctx context.Context, s *snapshot, scope Scope, requests []Request) ([]decision.Item, []Result, error) {
	scope.Namespace = s.Namespace
	results, later, names, err := u.advanceAndScan(ctx, s, scope, requests)
	if err != nil {
		return s.items, results, err
	}
	var lost []Request
	items := slices.Clone(s.items)
	for _, name := range names {
		lost = append(lost, Request{Name: name})
		results = slices.DeleteFunc(results, func(r Result) bool { return r.Name == name })
		if s.itemOf(name) == nil {
			items = append(items, *later.itemOf(name))
		}
	}
	repaired, err := u.advance(ctx, later, lost)
	return items, append(results, repaired...), err
}

// runner gathers what several namespaces report.
type runner struct {
	mu          sync.Mutex
	report      Report
	unconfirmed int // revisions of which it is not known whether they are missing
	err         error
}

func (r *runner) add(items []decision.Item, results []Result, each func(Result)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := make(map[string]int, len(results))
	for n := range results {
		at[results[n].Name] = n
	}
	for _, i := range items {
		one := Result{Item: i}
		if n, tried := at[i.Name]; tried {
			one = results[n]
		}
		r.report.add(i.Action, one)
		if i.Reason == decision.ReasonUnconfirmed {
			r.unconfirmed++
		}
		if each != nil && i.Action != decision.UpToDate {
			each(one)
		}
	}
}

// fail keeps the first error.
func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = cmp.Or(r.err, err)
}

func (r *runner) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// add counts one revision: what its scan decided, and the result of its upgrade.
func (r *Report) add(scanned decision.Action, one Result) {
	action := scanned
	if one.Action == decision.Deferred { // as the upgrade found, and the scan did not
		action = decision.Deferred
	}
	r.Counts.Add(action, one.Phase)
	if scanned == decision.Blocked || one.Phase == Failed {
		r.fail(one.Item)
	}
}

// Add counts one revision by its action and by the phase of its upgrade, which is empty where
// none was tried.
func (c *Counts) Add(a decision.Action, p Phase) {
	c.Discovered++
	switch {
	case p == RolledBack:
		c.RolledBack++
	case a == decision.UpToDate:
		c.UpToDate++
	case a == decision.Relabel && p == Succeeded:
		c.Relabelled++
	case a == decision.Deferred:
		c.Deferred++
	case a == decision.Blocked:
		c.Blocked++
	case a == decision.Unreferenced, p == Skipped:
		c.Unreferenced++
	case p == InUse, p == Created: // references are left to repoint
		c.InUse++
	case p == Retained, p == Repointed:
		c.Retained++
	case p == Failed:
		c.Failed++
	case p == Succeeded:
		c.Succeeded++
	default:
		c.Pending++
	}
}

func (r *Report) fail(i decision.Item) {
	if len(r.Failures) < maxFailures {
		r.Failures = append(r.Failures, godwit.Failure{Namespace: i.Namespace, Name: i.Name, Finding: godwit.Finding{Reason: i.Reason, Message: i.Message}})
	}
}
