package crdmigration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// writeEvery bounds how often progress is written: each write is an event to
// whoever watches.
const writeEvery = 5 * time.Second

// fieldManager names our writes where the server records them.
const fieldManager = "godwit"

// status is the status of one CRDMigration, as it was last written.
type status struct {
	client client.Client

	mu      sync.Mutex
	written *v1alpha1.CRDMigration
}

// write changes the status and sends the difference, if there is one. The rest is
// left as it is in the cluster.
func (s *status) write(ctx context.Context, change func(*v1alpha1.CRDMigration)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.written.DeepCopy()
	change(next)
	patch := client.MergeFrom(s.written)
	if data, err := patch.Data(next); err != nil || string(data) == "{}" {
		return err
	}
	err := s.client.Status().Patch(ctx, next, patch, client.FieldOwner(fieldManager))
	if apierrors.IsNotFound(err) {
		return nil // nobody is left to read it, and the run stops before its next page
	}
	if err != nil {
		return fmt.Errorf("write the status of crdmigration %s: %w", next.Name, err)
	}
	s.written = next
	return nil
}

// follow writes what progress stores, until stop is called.
func (s *status) follow(ctx context.Context, began time.Time) (progress func(crdmigrator.Report), stop func()) {
	var latest atomic.Pointer[crdmigrator.Report]
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(writeEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
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

func (j journal) Save(ctx context.Context, _ string, c crdmigrator.Checkpoint) error {
	return j.work.status.write(ctx, func(m *v1alpha1.CRDMigration) {
		m.Status.Checkpoint = nil
		if c.CRDUID != "" {
			m.Status.Checkpoint = new(v1alpha1.Checkpoint(c))
		}
	})
}
