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
	var trials []*trial
	byReferrer := map[*reference.Referrer]*trial{}
	for n := range s.items {
		i := &s.items[n]
		if i.Action != decision.Upgrade {
			continue
		}
		for _, ref := range s.Of(i.Name) {
			if !ref.Writable() {
				continue
			}
			t := byReferrer[ref.Referrer]
			if t == nil {
				t = &trial{Referrer: ref.Referrer, fields: map[string]map[string]string{}}
				byReferrer[ref.Referrer], trials = t, append(trials, t)
			}
			if t.fields[ref.Subresource] == nil {
				t.fields[ref.Subresource] = map[string]string{}
			}
			t.fields[ref.Subresource][ref.Path] = ref.Revision
			t.items = append(t.items, i)
		}
	}
	err := visit(ctx, u.options.Limiter, trials, func(ctx context.Context, t *trial) error { return t.send(ctx, u.client) })
	for _, t := range trials {
		for _, i := range t.items {
			if t.refusal != "" && i.Action == decision.Upgrade {
				i.Action, i.Reason, i.Message = decision.Blocked, decision.ReasonRefused, t.refusal
			}
		}
	}
	return err
}

// trial is the dry run of one object.
type trial struct {
	*reference.Referrer
	fields  map[string]map[string]string // by the subresource, and the path
	items   []*decision.Item             // of the revisions that it names
	refusal string                       // what the API server says, with the object's name; empty if it takes the object
}

// send notes whether the API server refuses the object.
func (t *trial) send(ctx context.Context, c *cluster.Client) error {
	for subresource, fields := range t.fields {
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
