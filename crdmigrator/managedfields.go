package crdmigrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// cleanupAttempts bounds how often one object's cleanup is tried again
	// because somebody else wrote the object meanwhile; an object that is that
	// busy is left for another run.
	cleanupAttempts = 3

	// seedFields is the least that an entry can own. Without any entry the
	// server takes the next apply for the first one, and makes up an owner of
	// everything that is there.
	seedFields = `{"f:metadata":{"f:name":{}}}`
)

// fieldsCleaner removes entries of managedFields that name a version which is
// not served: the server fails every apply that it needs to read them for.
type fieldsCleaner struct {
	group   string
	storage string // version of a seeding entry
	served  []string
	now     func() time.Time
}

// clean returns the entries that stay, and whether that is a change. It does
// not alter its argument. When no entry is left, a seeding entry in the name of
// the first that was removed takes their place.
func (c fieldsCleaner) clean(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool) {
	first := slices.IndexFunc(entries, c.stale)
	if first < 0 {
		return entries, false
	}
	kept := slices.DeleteFunc(slices.Clone(entries), c.stale)
	if len(kept) == 0 {
		now := metav1.NewTime(c.now())
		kept = []metav1.ManagedFieldsEntry{{
			Manager:    entries[first].Manager,
			Operation:  entries[first].Operation,
			APIVersion: schema.GroupVersion{Group: c.group, Version: c.storage}.String(),
			Time:       &now,
			FieldsType: "FieldsV1",
			FieldsV1:   metav1.NewFieldsV1(seedFields),
		}}
	}
	return kept, true
}

func (c fieldsCleaner) stale(e metav1.ManagedFieldsEntry) bool {
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	return err != nil || gv.Group != c.group || !slices.Contains(c.served, gv.Version)
}

// dropped reports an object whose managedFields the server has thrown away:
// it does so, silently, when a request is too large for etcd with them.
func dropped(before, after *metav1.PartialObjectMetadata) error {
	if len(before.ManagedFields) > 0 && len(after.ManagedFields) == 0 {
		return errors.New("the API server dropped all managedFields, since the object is too large with them; every applier has to apply again to own its fields")
	}
	return nil
}

// visit is the action on one object. Two jobs may be due; where both are, the
// cleanup is a write through the storage version and does both.
func (r *run) visit(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	done, err := r.done(o)
	if err != nil {
		return godwit.Failed, err
	}
	cleaner := r.cleaner.Load()
	if _, stale := cleaner.clean(o.ManagedFields); !stale || r.options.DryRun || r.skips(CleanupManagedFieldsPhase) {
		if done {
			return godwit.Skipped, nil
		}
		return r.rewrite(ctx, o)
	}
	seen, cleaned, why := r.cleanup(ctx, cleaner, o)
	outcome, err := r.settleStorage(ctx, seen, cleaned, done)
	if _, again := retry(err); !again {
		r.fields.add(o, cleaned, why)
	}
	return outcome, err
}

// settleStorage says what a cleanup means for the rewrite, and does what is
// left of it. A cleanup that failed must not keep the object at the old version.
func (r *run) settleStorage(ctx context.Context, seen *metav1.PartialObjectMetadata, cleaned godwit.Outcome, done bool) (godwit.Outcome, error) {
	switch {
	case cleaned == godwit.Gone:
		return godwit.Gone, nil
	case done:
		return godwit.Skipped, nil
	case cleaned == godwit.Migrated:
		return godwit.Migrated, nil
	}
	if fresh, err := newer(seen.ResourceVersion, r.since); fresh || err != nil {
		return godwit.Skipped, err // somebody else wrote it meanwhile
	}
	return r.rewrite(ctx, seen)
}

// cleanup removes the stale entries of one object. It returns the object as it
// was last seen, and what became of the cleanup: Deferred after conflicts or
// faults that time may cure, with the reason.
func (r *run) cleanup(ctx context.Context, cleaner *fieldsCleaner, o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, godwit.Outcome, error) {
	for attempt := 1; ; attempt++ {
		entries, stale := cleaner.clean(o.ManagedFields)
		if !stale {
			return o, godwit.Unchanged, nil // somebody else cleaned it
		}
		after, err := r.client.setManagedFields(ctx, r.resource, o, entries)
		if err == nil {
			return after, godwit.Migrated, dropped(o, after)
		}
		if apierrors.IsNotFound(err) {
			outcome, err := r.confirmGone(ctx, o)
			return o, outcome, err
		}
		if _, again := retry(err); !again {
			return o, godwit.Failed, fmt.Errorf("clean managedFields: %w", err)
		}
		if attempt == cleanupAttempts {
			return o, godwit.Deferred, fmt.Errorf("clean managedFields, %d attempts: %w", attempt, err)
		}
		if current, err := r.client.object(ctx, r.resource, o); err == nil {
			o = current
		}
	}
}

// Tally is what became of a job that is done beside the rewrite.
type Tally struct {
	Counts godwit.Counts
	// Failures are the first objects that failed or were deferred.
	Failures []godwit.Failure
}

// sideTally is a Tally under construction.
type sideTally struct {
	mu    sync.Mutex
	tally Tally
}

func (s *sideTally) add(o walk.Object, outcome godwit.Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.Counts.Add(outcome)
	if err != nil && len(s.tally.Failures) < walk.DefaultFailures {
		s.tally.Failures = append(s.tally.Failures, godwit.Failure{
			Namespace: o.GetNamespace(), Name: o.GetName(), Reason: err.Error(),
		})
	}
}

func (s *sideTally) report() Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Tally{Counts: s.tally.Counts, Failures: slices.Clip(s.tally.Failures)}
}
