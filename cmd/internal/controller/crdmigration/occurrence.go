package crdmigration

import (
	"errors"
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/walk"
)

// Occurrences are how a reason shows in the status of a CRDMigration, as the library decides it,
// so that the reference shows what the manager does.
func Occurrences(reason *godwit.Reason) []status.Occurrence {
	var all []status.Occurrence
	for _, o := range outcomes() {
		if o.Reason != reason.Name {
			continue
		}
		shown := status.Occurrence{Condition: string(o.State)}
		if o.isNews() {
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
	counts := func(c godwit.Counts) storageversion.Report {
		return storageversion.Report{Storage: walk.Report{Counts: c}}
	}
	blocked := func(reason *godwit.Reason) error {
		return &storageversion.BlockedError{Blockers: []godwit.Finding{{Reason: reason}}}
	}
	failed := func(err error) outcome {
		return outcomeOf(storageversion.Next(storageversion.Plan{}, storageversion.Report{}, err, storageversion.History{}))
	}
	ended := func(r storageversion.Report, conflicts int) outcome {
		return outcomeOf(storageversion.Next(storageversion.Plan{}, r, nil, storageversion.History{Conflicts: conflicts}))
	}
	const manyConflicts = 1000
	return []outcome{
		ended(storageversion.Report{Trimmed: true}, 0), ended(storageversion.Report{}, 0),
		failed(&storageversion.NotSettledError{}), failed(&storageversion.NotSettledError{Stale: []storageversion.Server{{}}}),
		migrating(), suspended(), failed(storageversion.ErrNotFound), failed(storageversion.ErrChanged),
		failed(blocked(storageversion.ReasonForbidden)), failed(blocked(storageversion.ReasonMigrationInProgress)),
		failed(errors.New("the API server does not answer")), failed(&storageversion.UnlistedError{Finding: godwit.Finding{Reason: storageversion.ReasonThrottled}}),
		ended(counts(godwit.Counts{Deferred: 1}), 0), ended(counts(godwit.Counts{Deferred: 1}), manyConflicts),
		ended(counts(godwit.Counts{Failed: 1}), 0),
		ended(storageversion.Report{Trimmed: true, ManagedFields: storageversion.Tally{Counts: godwit.Counts{Failed: 1}}}, 0),
	}
}
