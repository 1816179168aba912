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
	s, err := u.snapshotOf(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return u.advance(ctx, s, requests)
}

// snapshotOf scans one namespace, which may be empty.
func (u *Upgrader) snapshotOf(ctx context.Context, namespace string) (*snapshot, error) {
	s := &snapshot{Index: refindex.New(namespace), lineage: lineage.NewIndex()}
	for found, err := range u.snapshots(ctx, Scope{Namespace: namespace}) {
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

// advance takes the upgrades of one namespace through the stages. After a batch it keeps the
// results, and the upgrades whose old revision it has deleted: later scans may find references
// to these revisions.
func (u *Upgrader) advance(ctx context.Context, s *snapshot, requests []Request) (results []Result, err error) {
	all, deleted := u.stages(), map[int]*upgrade{}
	results = make([]Result, 0, len(requests))
	for chunk := range slices.Chunk(requests, batchSize) {
		batch := make([]*upgrade, len(chunk))
		for i, r := range chunk {
			batch[i] = newUpgrade(r, s.item(r), u.options.Policy)
		}
		if err == nil {
			err = all.apply(ctx, s, batch)
		}
		for _, one := range batch {
			if one.deleted {
				deleted[len(results)] = one
			}
			results = append(results, one.result)
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
