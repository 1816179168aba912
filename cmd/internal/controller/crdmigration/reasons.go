package crdmigration

import (
	"errors"
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
)

// Sign is how a reason of the condition Ready shows.
type Sign struct {
	Reason    string
	Condition string // that is True; empty: none
	EventType string // empty: there is no event
}

// Signs are those of every reason, as crdmigrator decides them, so that the reference shows
// what the manager does. A reason that shows in two ways is there twice.
func Signs() []Sign {
	counts := func(c godwit.Counts) crdmigrator.Report { return crdmigrator.Report{Storage: walk.Report{Counts: c}} }
	blocked := func(reason string) error {
		return &crdmigrator.BlockedError{Blockers: []godwit.Blocker{{Reason: reason}}}
	}
	failed := func(err error) outcome {
		return outcomeOf(crdmigrator.Next(crdmigrator.Plan{}, crdmigrator.Report{}, err, crdmigrator.History{}))
	}
	ended := func(r crdmigrator.Report, conflicts int) outcome {
		return outcomeOf(crdmigrator.Next(crdmigrator.Plan{}, r, nil, crdmigrator.History{Conflicts: conflicts}))
	}
	const manyConflicts = 1000
	var signs []Sign
	for _, o := range []outcome{
		ended(crdmigrator.Report{Trimmed: true}, 0), ended(crdmigrator.Report{}, 0),
		failed(&crdmigrator.NotSettledError{}), failed(&crdmigrator.NotSettledError{Stale: []crdmigrator.Server{{}}}),
		migrating(), suspended(), failed(crdmigrator.ErrNotFound), failed(crdmigrator.ErrChanged),
		failed(blocked(crdmigrator.ReasonForbidden)), failed(blocked(crdmigrator.ReasonMigrationInProgress)),
		failed(errors.New("the API server does not answer")), failed(&crdmigrator.UnlistedError{Reason: crdmigrator.ReasonThrottled}),
		ended(counts(godwit.Counts{Deferred: 1}), 0), ended(counts(godwit.Counts{Deferred: 1}), manyConflicts),
		ended(counts(godwit.Counts{Failed: 1}), 0),
		ended(crdmigrator.Report{Trimmed: true, ManagedFields: crdmigrator.Tally{Counts: godwit.Counts{Failed: 1}}}, 0),
	} {
		s := Sign{Reason: o.Reason, Condition: string(o.State)}
		if o.isNews() {
			s.EventType = o.EventType()
		}
		if !slices.Contains(signs, s) {
			signs = append(signs, s)
		}
	}
	return signs
}
