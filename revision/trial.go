package revision

import (
	"context"
	"fmt"
	"iter"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Try is Plan with a dry run of the writes: each object that a run would repoint is sent as it is,
// so that the API server and its webhooks say whether they take it at all. A new name can't be
// tried, since a webhook looks for the revision, which a dry run does not store.
func (u *Upgrader) Try(ctx context.Context, scope Scope) iter.Seq2[decision.Item, error] {
	return func(yield func(decision.Item, error) bool) {
		for s, err := range u.snapshots(ctx, scope) {
			if err == nil {
				err = u.try(ctx, s)
			}
			if err != nil {
				yield(decision.Item{}, cluster.Forbidden(err))
				return
			}
			for _, i := range s.items {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// try marks the items of a snapshot whose writes the API server refuses.
func (u *Upgrader) try(ctx context.Context, s *snapshot) error {
	referrers, byReferrer := s.byReferrer(s.upgrades)
	trials := make([]*trial, len(referrers))
	for n, r := range referrers {
		trials[n] = &trial{Referrer: r, references: byReferrer[r]}
	}
	err := visit(ctx, u.options.Limiter, trials, func(ctx context.Context, t *trial) error { return t.send(ctx, u.client) })
	for _, t := range trials {
		for _, ref := range t.references {
			if i := s.itemOf(ref.Revision); t.refusal != "" && i.Action == decision.Upgrade {
				i.Action, i.Reason, i.Message = decision.Blocked, decision.ReasonRefused, t.refusal
			}
		}
	}
	return err
}

// upgrades yields the names of the revisions that a run would upgrade.
func (s *snapshot) upgrades(yield func(string) bool) {
	for _, i := range s.items {
		if i.Action == decision.Upgrade && !yield(i.Name) {
			return
		}
	}
}

// trial is the dry run of one object.
type trial struct {
	*reference.Referrer
	references []reference.Reference
	refusal    string // what the API server says, with the object's name; empty if it takes the object
}

// send notes whether the API server refuses the object.
func (t *trial) send(ctx context.Context, c *cluster.Client) error {
	for _, subresource := range subresources {
		fields := map[string]string{}
		for _, ref := range t.references {
			if ref.Subresource == subresource {
				fields[ref.Path] = ref.Revision
			}
		}
		if len(fields) == 0 {
			continue
		}
		err := c.TryPatch(ctx, t.Referrer, subresource, fields)
		switch {
		case err == nil, apierror.IsConflictOrNotFound(err):
		case permanent(err):
			t.refusal = fmt.Sprintf("the API server refuses %s %s as it is, in a dry run: %v", t.Kind, t.Name, err)
			return nil
		default:
			return err
		}
	}
	return nil
}
