package crdmigration

import (
	"errors"
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/walk"
)

// Sign is how a reason of the condition Ready shows.
type Sign struct {
	Reason    string
	Condition string // that is True; empty: none
	EventType string // empty: there is no event
}

// Signs are those of every reason, as storageversion decides them, so that the reference shows
// what the manager does. A reason that shows in two ways is there twice.
func Signs() []Sign {
	counts := func(c godwit.Counts) storageversion.Report {
		return storageversion.Report{Storage: walk.Report{Counts: c}}
	}
	blocked := func(reason string) error {
		return &storageversion.BlockedError{Blockers: []godwit.Blocker{{Reason: reason}}}
	}
	failed := func(err error) outcome {
		return outcomeOf(storageversion.Next(storageversion.Plan{}, storageversion.Report{}, err, storageversion.History{}))
	}
	ended := func(r storageversion.Report, conflicts int) outcome {
		return outcomeOf(storageversion.Next(storageversion.Plan{}, r, nil, storageversion.History{Conflicts: conflicts}))
	}
	const manyConflicts = 1000
	var signs []Sign
	for _, o := range []outcome{
		ended(storageversion.Report{Trimmed: true}, 0), ended(storageversion.Report{}, 0),
		failed(&storageversion.NotSettledError{}), failed(&storageversion.NotSettledError{Stale: []storageversion.Server{{}}}),
		migrating(), suspended(), failed(storageversion.ErrNotFound), failed(storageversion.ErrChanged),
		failed(blocked(storageversion.ReasonForbidden)), failed(blocked(storageversion.ReasonMigrationInProgress)),
		failed(errors.New("the API server does not answer")), failed(&storageversion.UnlistedError{Reason: storageversion.ReasonThrottled}),
		ended(counts(godwit.Counts{Deferred: 1}), 0), ended(counts(godwit.Counts{Deferred: 1}), manyConflicts),
		ended(counts(godwit.Counts{Failed: 1}), 0),
		ended(storageversion.Report{Trimmed: true, ManagedFields: storageversion.Tally{Counts: godwit.Counts{Failed: 1}}}, 0),
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
