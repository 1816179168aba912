package crdmigration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
)

// writeEvery is between two writes of progress, and between any write and progress
// after it: each is an event to whoever watches.
const writeEvery = 5 * time.Second

// lastWords bounds the last write of a manager that is told to stop, well below the
// 30 s that a pod is given to end.
const lastWords = 5 * time.Second

// fieldManager names our writes where the server records them.
const fieldManager = "godwit"

// status is the status of one CRDMigration, as it was last read or written.
type status struct {
	client client.Client
	reader client.Reader // live

	mu      sync.Mutex
	written *v1alpha1.CRDMigration
	noted   []change // for the next write to take along
	tried   time.Time
}

// change is one that can be made again, of a status that somebody else has written
// meanwhile.
type change func(*v1alpha1.CRDMigration)

// note has the next write carry a change along.
func (s *status) note(c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted = append(s.noted, c)
}

// write makes a change, after what was noted, and sends the status if that makes a
// difference. A status that is not as we know it is read again, so that no field of
// a second manager's, started by mistake, is mixed with ours.
func (s *status) write(ctx context.Context, c change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted = append(s.noted, c)
	defer func() { s.tried = time.Now() }()
	err := retry.OnError(retry.DefaultRetry, apierrors.IsConflict, func() error {
		err := s.send(ctx)
		if apierrors.IsConflict(err) {
			if gone := s.reread(ctx); gone != nil {
				return gone
			}
		}
		return err
	})
	if err = client.IgnoreNotFound(err); err != nil { // nobody is left to read it, and the run stops before its next page
		return fmt.Errorf("write the status of crdmigration %s: %w", s.written.Name, err)
	}
	s.noted = nil
	return nil
}

func (s *status) send(ctx context.Context) error {
	next := s.written.DeepCopy()
	for _, c := range s.noted {
		c(next)
	}
	if equality.Semantic.DeepEqual(s.written.Status, next.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(s.written, client.MergeFromWithOptimisticLock{})
	if err := s.client.Status().Patch(ctx, next, patch, client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	s.know(next)
	return nil
}

// know takes in what the cluster holds, but for the generation: what is written is
// about the spec that the work began with, also where that has changed meanwhile.
func (s *status) know(m *v1alpha1.CRDMigration) {
	m.Generation = s.written.Generation
	s.written = m
}

// reread: one that was made anew under the same name is not the one we are about.
func (s *status) reread(ctx context.Context) error {
	now := &v1alpha1.CRDMigration{}
	if err := s.reader.Get(ctx, client.ObjectKeyFromObject(s.written), now); err != nil {
		return err
	}
	if now.UID != s.written.UID {
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("crdmigrations").GroupResource(), now.Name)
	}
	s.know(now)
	return nil
}

// leave sends what was noted when the manager stops. It may fail: the next one goes
// on from the checkpoint that there is, and once that one has written, it knows
// better.
func (s *status) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.send(ctx)
}

// rest is how long the status is to be left alone.
func (s *status) rest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return writeEvery - time.Since(s.tried)
}

// follow writes what progress stores, until stop is called.
func (s *status) follow(ctx context.Context, began time.Time) (progress func(crdmigrator.Report), stop func()) {
	var latest atomic.Pointer[crdmigrator.Report]
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := writeEvery; walk.Wait(ctx, wait) == nil; {
			if wait = s.rest(); wait > 0 {
				continue
			}
			wait = writeEvery
			report := latest.Swap(nil)
			if report == nil {
				continue
			}
			err := s.write(ctx, func(m *v1alpha1.CRDMigration) {
				record(m, *report, began, time.Now())
				migrating().apply(m)
			})
			if err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Progress is not shown")
			}
		}
	}()
	return func(r crdmigrator.Report) { latest.Store(&r) }, func() { cancel(); <-done }
}

// record writes down what a pass has done so far.
func record(m *v1alpha1.CRDMigration, report crdmigrator.Report, began, now time.Time) {
	storage := report.Storage
	if storage.Counts.Total() == 0 && !storage.Complete {
		return // it ended before the first object: what the pass before has done still stands
	}
	m.Status.Storage, m.Status.ManagedFields = &storage.Counts, &report.ManagedFields.Counts
	m.Status.Failures = samples(storage.Failures, report.ManagedFields.Failures)
	m.Status.Progress = progressText(storage.Counts.Total(), storage.Remaining)
	if m.Status.StartTime == nil {
		m.Status.StartTime = &metav1.Time{Time: began}
	}
	m.Status.EstimatedCompletion = estimate(began, now, storage.Counts.Total(), storage.Remaining)
}

func samples(lists ...[]godwit.Failure) []godwit.Failure {
	var all []godwit.Failure
	for _, l := range lists {
		all = append(all, l...)
	}
	return all[:min(len(all), maxSamples)]
}

func progressText(done, remaining int64) string {
	if remaining < 0 {
		return fmt.Sprintf("%d/?", done)
	}
	return fmt.Sprintf("%d/%d", done, done+remaining)
}

// estimate is nil where there is nothing to go by.
func estimate(began, now time.Time, done, remaining int64) *metav1.Time {
	if done <= 0 || remaining <= 0 {
		return nil
	}
	perObject := now.Sub(began) / time.Duration(done)
	return &metav1.Time{Time: now.Add(perObject * time.Duration(remaining)).Truncate(time.Second)}
}

// journal keeps the checkpoint in the status: an annotation on the definition
// would be another's to strip, and every watcher of definitions would see it.
type journal struct {
	work   *work
	reader client.Reader
}

// Load reads live: a cache may lag behind the checkpoint of the run before.
func (j journal) Load(ctx context.Context, _ *apiextensionsv1.CustomResourceDefinition) (crdmigrator.Checkpoint, error) {
	m := &v1alpha1.CRDMigration{}
	if err := j.reader.Get(ctx, client.ObjectKey{Name: j.work.name}, m); err != nil {
		return crdmigrator.Checkpoint{}, client.IgnoreNotFound(err)
	}
	if m.Status.Checkpoint == nil {
		return crdmigrator.Checkpoint{}, nil
	}
	return crdmigrator.Checkpoint(*m.Status.Checkpoint), nil
}

// Save leaves it to the next progress to carry a cursor along, and what else is new
// is evidence, which must be there before a write relies on it. A cursor that gets
// lost costs requests.
func (j journal) Save(ctx context.Context, _ string, c crdmigrator.Checkpoint) error {
	if j.work.status.knows(c) {
		j.work.status.note(func(m *v1alpha1.CRDMigration) { m.Status.Checkpoint = new(v1alpha1.Checkpoint(c)) })
		return nil
	}
	return j.work.status.write(ctx, func(m *v1alpha1.CRDMigration) {
		m.Status.Checkpoint = nil
		if c.CRDUID != "" {
			m.Status.Checkpoint = new(v1alpha1.Checkpoint(c))
			migrating().apply(m)
		}
	})
}

// knows reports whether the status holds a checkpoint, but for its cursor.
func (s *status) knows(c crdmigrator.Checkpoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written.Status.Checkpoint == nil {
		return false
	}
	known := crdmigrator.Checkpoint(*s.written.Status.Checkpoint)
	known.Cursor, known.Restarts = c.Cursor, c.Restarts // these are cut to the second, and new ones come with a new resourceVersion
	return equality.Semantic.DeepEqual(known, c)
}
