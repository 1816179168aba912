package revision

import (
	"context"
	"slices"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
)

// stage takes upgrades one step further: those whose next step is its own, and no others.
type stage interface {
	Apply(ctx context.Context, s *snapshot, upgrades []*upgrade) error
}

// stages of one pass, in their order.
func (u *Upgrader) stages() []stage {
	w := worker{limiter: u.options.Limiter, progress: u.options.Progress}
	c := counterparts{client: u.client, family: u.family}
	p := &repoint{worker: w, client: u.client}
	return []stage{
		&create{worker: w, client: u.client, family: u.family, counterparts: c, local: u.local},
		&rollback{worker: w, client: u.client, family: u.family, clock: u.clock, counterparts: c},
		p,
		&release{worker: w, client: u.client, family: u.family, clock: u.clock, local: u.local, repoint: p},
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
	stages, deleted := u.stages(), map[int]*upgrade{}
	results = make([]Result, 0, len(requests))
	for chunk := range slices.Chunk(requests, batchSize) {
		batch := make([]*upgrade, len(chunk))
		for i, r := range chunk {
			batch[i] = newUpgrade(r, s.item(r), u.options.Policy)
		}
		if err == nil {
			err = apply(ctx, stages, s, batch)
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
func apply(ctx context.Context, stages []stage, s *snapshot, batch []*upgrade) error {
	defer func() {
		for _, u := range batch {
			u.dropData()
		}
	}()
	for _, one := range stages {
		if err := one.Apply(ctx, s, batch); err != nil {
			return err
		}
	}
	return nil
}
