package storageversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/recent"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// cleanupConflicts bounds how often one object's cleanup is tried because
	// another client wrote the object meanwhile; an object that is that busy is
	// left for another run.
	cleanupConflicts = 3

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

func (m *Migrator) cleanerOf(crd *apiextensionsv1.CustomResourceDefinition) *fieldsCleaner {
	return &fieldsCleaner{
		group: crd.Spec.Group, storage: kube.StorageVersion(crd), served: kube.ServedVersions(crd), now: m.client.Clock.Now,
	}
}

// scanManagedFields reads objects until one has stale managedFields.
func (m *Migrator) scanManagedFields(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (ManagedFields, error) {
	cleaner := m.cleanerOf(crd)
	pages := walk.ListOptions{PageObjects: m.options.PageObjects, Attempts: quicklist.Attempts, Retry: quicklist.Transient}
	for page, err := range m.list().objects(ctx, kube.ResourceOf(crd), pages) {
		if err != nil {
			return ManagedFieldsUnknown, err
		}
		for _, o := range page.Items {
			if slices.ContainsFunc(o.ManagedFields, cleaner.stale) {
				return ManagedFieldsStale, nil
			}
		}
	}
	return ManagedFieldsClean, nil
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
		return errDropped
	}
	return nil
}

// visit is the action on one object. Two jobs may be due; where both are, the
// cleanup is a write through the storage version and does both.
func (r *rewriter) visit(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	done, err := r.done(o)
	if err != nil {
		return godwit.Failed, err
	}
	cleaner := r.epoch.Load().cleaner
	if _, stale := cleaner.clean(o.ManagedFields); !stale || r.options.DryRun || r.options.skips(CleanupManagedFieldsPhase) {
		if done {
			return godwit.Skipped, nil
		}
		return r.rewriteAlone(ctx, o)
	}
	seen, cleaned, why := r.cleanup(ctx, cleaner, o)
	outcome, lost, err := r.settleStorage(ctx, seen, cleaned, done)
	switch {
	case lost != nil:
		cleaned, why = godwit.Failed, lost
	case cleaned == godwit.Migrated && why != nil:
		cleaned = godwit.Failed // the object was written, but more was lost than was to go
	}
	_, again := retry(err)
	if _, transient := walk.Transient(why); err == nil && cleaned == godwit.Deferred && transient { // an object of conflicts is left to another run
		again, err = true, &walk.UnfinishedError{Cause: why}
	}
	if again {
		r.tally.expect(o, cleaned, why) // the object is visited again, unless its attempts are used up
	} else {
		r.tally.add(o, cleaned, why)
	}
	return outcome, err
}

// rewriteAlone is for objects without a cleanup. One that costs them their
// managedFields counts as a cleanup that failed.
func (r *rewriter) rewriteAlone(ctx context.Context, o *metav1.PartialObjectMetadata) (godwit.Outcome, error) {
	outcome, lost, err := r.rewrite(ctx, o)
	if lost != nil {
		r.tally.add(o, godwit.Failed, lost)
	}
	return outcome, err
}

// settleStorage says what a cleanup means for the rewrite, and does what is
// left of it. A cleanup that failed must not keep the object at the old version.
func (r *rewriter) settleStorage(ctx context.Context, seen *metav1.PartialObjectMetadata, cleaned godwit.Outcome, done bool) (outcome godwit.Outcome, lost, err error) {
	switch {
	case cleaned == godwit.Gone:
		return godwit.Gone, nil, nil
	case done:
		return godwit.Skipped, nil, nil
	case cleaned == godwit.Migrated:
		r.recent.Add(recent.Of(r.epoch.Load().key, seen))
		return godwit.Migrated, nil, nil
	}
	fresh, err := newer(seen.ResourceVersion, r.baseline.Load().since)
	switch {
	case err != nil:
		return godwit.Failed, nil, err
	case fresh:
		return godwit.Skipped, nil, nil // another client wrote it meanwhile
	}
	return r.rewrite(ctx, seen)
}

// cleanup removes the stale entries of one object. It returns the object as it
// was last seen, and what became of the cleanup: Deferred after conflicts or
// a fault that time may cure, with the reason.
func (r *rewriter) cleanup(ctx context.Context, cleaner *fieldsCleaner, o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, godwit.Outcome, error) {
	if refused := r.cleanupRefused.Load(); refused != nil {
		return o, godwit.Failed, r.notCleaned(*refused)
	}
	for attempt := 1; ; attempt++ {
		entries, stale := cleaner.clean(o.ManagedFields)
		if !stale {
			return o, godwit.Unchanged, nil // another client cleaned it
		}
		after, err := r.client.SetManagedFields(ctx, r.epoch.Load().gvr, o, entries)
		err = apierror.RetryForbidden(err)
		switch {
		case err == nil && deletionCompleted(after):
			return after, godwit.Gone, nil
		case err == nil && slices.ContainsFunc(after.ManagedFields, cleaner.stale):
			return after, godwit.Failed, errKept
		case err == nil:
			return after, godwit.Migrated, dropped(o, after)
		case apierrors.IsNotFound(err):
			outcome, err := r.confirmGone(ctx, o)
			return o, outcome, err
		case apierror.IsForbidden(err) && (r.baseline.Load().stored || !r.options.Write.orDefault().patchesObject()):
			return o, godwit.Failed, r.notCleaned(r.cleanNoMore(ctx))
		case !apierrors.IsConflict(err):
			return o, r.giveUp(ctx, err), fmt.Errorf("clean managedFields: %w", err)
		case attempt == cleanupConflicts:
			return o, godwit.Deferred, fmt.Errorf("clean managedFields, %d conflicts: %w", attempt, err)
		}
		current, err := r.client.Find(ctx, r.epoch.Load().gvr, o)
		switch {
		case err != nil:
			return o, r.giveUp(ctx, err), fmt.Errorf("clean managedFields, look again after a conflict: %w", err)
		case current == nil:
			return o, godwit.Gone, nil
		}
		o = current
	}
}

// errKept reports a cleanup that the server accepted and did not carry out, as it
// does with entries that it can't read.
// errDropped is a write that cost an object all its managedFields.
var errDropped = errors.New("the API server dropped all managedFields, since the object is too large with them; every applier has to apply again to own its fields")

var errKept = errors.New("the API server kept managedFields of versions that are not served")

// cleanNoMore spares the rest of the run a permission that is missing for good: every
// object would wait for it as for a server that starts.
func (r *rewriter) cleanNoMore(ctx context.Context) error {
	b := forbidden(kube.UserName(ctx, r.client), cleanupGrant(r.epoch.Load().gvr.GroupResource()))
	refused := fmt.Errorf("clean managedFields: %s; %s", b.Message, b.Fix)
	r.cleanupRefused.Store(&refused)
	return refused
}

// notCleaned is the reason that the report gives for an object. A run that has only
// managedFields to clean is blocked as a whole, and says so once.
func (r *rewriter) notCleaned(refused error) error {
	if r.baseline.Load().stored {
		return nil
	}
	return refused
}

// giveUp tells a cleanup that another run may bring to its end from one that
// the server refuses.
func (r *rewriter) giveUp(ctx context.Context, err error) godwit.Outcome {
	if _, transient := retry(err); transient || ctx.Err() != nil || errors.Is(err, walk.ErrStopped) {
		return godwit.Deferred
	}
	return godwit.Failed
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
	// expected are the cleanups of objects that are to be visited again. They count
	// as they were last seen when the walk is done with the object. No more objects
	// are in here than the walk lets wait.
	expected map[string]cleanupResult
}

type cleanupResult struct {
	object  walk.Object
	outcome godwit.Outcome
	why     error
}

func (s *sideTally) expect(o walk.Object, outcome godwit.Outcome, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected == nil {
		s.expected = map[string]cleanupResult{}
	}
	s.expected[walk.Key(o)] = cleanupResult{o, outcome, why}
}

func (s *sideTally) add(o walk.Object, outcome godwit.Outcome, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.expected, walk.Key(o))
	s.tally.add(cleanupResult{o, outcome, why})
}

func (t *Tally) add(v cleanupResult) {
	t.Counts.Add(v.outcome)
	if v.why != nil && len(t.Failures) < walk.DefaultFailures {
		t.Failures = append(t.Failures, godwit.Failure{
			Namespace: v.object.GetNamespace(), Name: v.object.GetName(),
			Reason: failureReason(v.why), Message: v.why.Error(),
		})
	}
}

// end counts what is expected of an object that is not visited again.
func (s *sideTally) end(o walk.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.expected) == 0 {
		return
	}
	key := walk.Key(o)
	if v, ok := s.expected[key]; ok {
		delete(s.expected, key)
		s.tally.add(v)
	}
}

// report is the tally so far, without what is still expected.
func (s *sideTally) report() Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Tally{Counts: s.tally.Counts, Failures: slices.Clip(s.tally.Failures)}
}
