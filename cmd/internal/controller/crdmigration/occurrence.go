package crdmigration

import (
	"errors"
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// Occurrences returns how a reason shows in the status of a CRDMigration, as the library decides it, for the reference.
func Occurrences(reason *godwit.Reason) []status.Occurrence {
	var all []status.Occurrence
	for _, o := range outcomes() {
		if o.Reason != reason.Name {
			continue
		}
		shown := status.Occurrence{Condition: string(o.State)}
		if o.needsEvent() {
			shown.EventType = o.EventType()
		}
		if !slices.Contains(all, shown) {
			all = append(all, shown)
		}
	}
	return all
}

// outcomes has each reason in each of its conditions.
func outcomes() []outcome {
	counts := func(c godwit.Counts) decision.Report {
		return decision.Report{Storage: walk.Report{Counts: c}}
	}
	blocked := func(reason *godwit.Reason) error {
		return &decision.BlockedError{Blockers: []godwit.Finding{{Reason: reason}}}
	}
	failed := func(err error) outcome {
		return outcomeOf(decision.Next(decision.Plan{}, decision.Report{}, err, decision.History{}))
	}
	ended := func(r decision.Report, conflicts int) outcome {
		return outcomeOf(decision.Next(decision.Plan{}, r, nil, decision.History{Conflicts: conflicts}))
	}
	const manyConflicts = 1000
	return []outcome{
		ended(decision.Report{Trimmed: true}, 0), ended(decision.Report{}, 0),
		failed(&decision.NotSettledError{}), failed(&decision.NotSettledError{Stale: []decision.Server{{}}}),
		migrating(), suspended(), failed(decision.ErrNotFound), failed(decision.ErrChanged),
		failed(blocked(decision.ReasonForbidden)), failed(blocked(decision.ReasonMigrationInProgress)),
		failed(errors.New("the API server does not answer")), failed(&decision.UnlistedError{Finding: godwit.Finding{Reason: decision.ReasonThrottled}}),
		ended(counts(godwit.Counts{Deferred: 1}), 0), ended(counts(godwit.Counts{Deferred: 1}), manyConflicts),
		ended(counts(godwit.Counts{Failed: 1}), 0),
		ended(decision.Report{Trimmed: true, ManagedFields: decision.Tally{Counts: godwit.Counts{Failed: 1}}}, 0),
	}
}
