package revision

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
	"github.com/godwit-dev/godwit/revision/reference"
)

// stage takes upgrades one step further: those whose next step is its own, and no others.
type stage interface {
	Apply(ctx context.Context, s *snapshot, upgrades []*upgrade) error
}

// stages of one pass, in their order.
type stages struct {
	create  *create
	each    []stage // for the upgrades of one owner
	release *release
}

func (u *Upgrader) stages() stages {
	w := worker{limiter: u.options.Limiter, progress: u.options.Progress}
	c := counterparts{client: u.client, family: u.family}
	p := &repoint{worker: w, client: u.client}
	first := &create{worker: w, client: u.client, family: u.family, counterparts: c, local: u.local}
	return stages{
		create:  first,
		each:    []stage{first, &rollback{worker: w, client: u.client, family: u.family, clock: u.clock, counterparts: c}, p},
		release: &release{worker: w, client: u.client, family: u.family, clock: u.clock, local: u.local, repoint: p},
	}
}

// Advance takes the upgrades of one namespace as far as they can go now. It begins with a scan, so
// that any client may call it again at any time, after any interruption.
func (u *Upgrader) Advance(ctx context.Context, namespace string, requests []Request) ([]Result, error) {
	scope := Scope{Namespace: namespace}
	s, err := u.snapshotOf(ctx, scope)
	if err != nil {
		return nil, err
	}
	results, later, names, err := u.advanceAndScan(ctx, s, scope, requests)
	if err != nil {
		return results, err
	}
	var lost []Request
	var at []int
	for n, r := range requests {
		if slices.Contains(names, r.Name) {
			lost, at = append(lost, r), append(at, n)
		}
	}
	repaired, err := u.advance(ctx, later, lost)
	for i, r := range repaired {
		results[at[i]] = r
	}
	return results, err
}

// advanceAndScan takes the upgrades of one namespace as far as they can go now. It then returns which pins in scope other software
// has left behind, by the names of the revisions that they name, and the scan that shows it: software that upgrades revisions
// itself may have read one before it was upgraded here, and delete it afterwards. Where no revision was in danger, it does not scan.
func (u *Upgrader) advanceAndScan(ctx context.Context, s *snapshot, scope Scope, requests []Request) (results []Result, later *snapshot, lost []string, err error) {
	results, err = u.advance(ctx, s, requests)
	if err != nil || !slices.ContainsFunc(s.items, decision.Item.InDanger) {
		return results, s, nil, err
	}
	if later, err = u.snapshotOf(ctx, scope); err != nil {
		return results, nil, nil, err
	}
	for _, i := range later.items {
		if i.Action == decision.Upgrade && i.Reason == decision.ReasonSourceGone {
			lost = append(lost, i.Name)
		}
	}
	return results, later, lost, nil
}

// snapshotOf scans the scope, which is one namespace or a part of it, and may be empty.
func (u *Upgrader) snapshotOf(ctx context.Context, scope Scope) (*snapshot, error) {
	s := &snapshot{Index: refindex.New(scope.Namespace), lineage: lineage.NewIndex()}
	for found, err := range u.snapshots(ctx, scope) {
		if err != nil {
			return nil, err
		}
		s = found
	}
	return s, nil
}

// batchSize bounds how many revisions are in memory with their data, and how many are deleted
// before the scan that repairs references which were written meanwhile.
const batchSize = 200

// advance takes the upgrades of one namespace through the stages, first those whose revision other software may delete at any
// time. After a batch it keeps the results, and the upgrades whose old revision it has deleted: later scans may find references
// to these revisions.
func (u *Upgrader) advance(ctx context.Context, s *snapshot, requests []Request) (results []Result, err error) {
	all, deleted := u.stages(), map[int]*upgrade{}
	results = make([]Result, len(requests))
	for chunk := range slices.Chunk(s.inDangerFirst(requests), batchSize) {
		batch := make([]*upgrade, len(chunk))
		for i, n := range chunk {
			batch[i] = newUpgrade(requests[n], s.item(requests[n]), u.options.Policy)
		}
		if err == nil {
			err = all.apply(ctx, s, batch)
		}
		for i, one := range batch {
			if one.deleted {
				deleted[chunk[i]] = one
			}
			results[chunk[i]] = one.result
		}
	}
	for i, one := range deleted {
		results[i] = one.result
	}
	return results, cluster.Forbidden(err)
}

// newUpgrade starts the upgrade of a request. The policy is for a request without one.
func newUpgrade(r Request, i decision.Item, p decision.Policy) *upgrade {
	u := &upgrade{request: r, policy: p, result: Result{Item: i, Phase: Pending}, next: stepCreate}
	if r.Policy != nil {
		u.policy = *r.Policy
	}
	if r.Rollback {
		u.next = stepRollback
	}
	return u
}

// apply takes a batch through all stages.
func (a stages) apply(ctx context.Context, s *snapshot, batch []*upgrade) error {
	defer func() {
		for _, u := range batch {
			u.dropData()
		}
	}()
	a.create.listSources(ctx, s, dueFor(batch, stepCreate))
	if err := a.applyEach(ctx, s, byOwner(batch)); err != nil {
		return err
	}
	return a.release.Apply(ctx, s, batch)
}

// ownersAtOnce is as many as requests may be in flight by default.
const ownersAtOnce = 16

// applyEach creates the replacements of one owner and repoints the references to its revisions, of several owners at once. The
// time between the two is kept short: KubeVirt's own upgrade of a machine finds the new revision in its way, and reports that.
func (a stages) applyEach(ctx context.Context, s *snapshot, groups [][]*upgrade) error {
	errs, turns := make([]error, len(groups)), make(chan struct{}, ownersAtOnce)
	var failed atomic.Bool
	var all sync.WaitGroup
	for i, group := range groups {
		turns <- struct{}{}
		if failed.Load() {
			break
		}
		all.Go(func() {
			defer func() { <-turns }()
			for _, one := range a.each {
				if errs[i] = one.Apply(ctx, s, group); errs[i] != nil {
					failed.Store(true)
					return
				}
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// byOwner divides a batch. One write of an object is for all revisions that it names, and most name those that they own.
func byOwner(batch []*upgrade) [][]*upgrade {
	var groups [][]*upgrade
	at := map[reference.Owner]int{}
	for _, u := range batch {
		n, known := at[u.result.Owner]
		if !known {
			n = len(groups)
			groups, at[u.result.Owner] = append(groups, nil), n
		}
		groups[n] = append(groups[n], u)
	}
	return groups
}
