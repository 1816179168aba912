package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// migrationTimeout is much longer than the largest migration.
const migrationTimeout = time.Hour

// migrations follows the status of each CRDMigration by one watch for the whole time, because polling would add load.
type migrations struct {
	mu      sync.Mutex
	known   map[string]*v1alpha1.CRDMigration
	changed chan struct{} // closed at the next change
}

func watchMigrations(ctx context.Context, admin *rest.Config) (*migrations, error) {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	m := &migrations{known: map[string]*v1alpha1.CRDMigration{}, changed: make(chan struct{})}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(v1alpha1.GroupVersion.WithResource("crdmigrations")).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    m.record,
		UpdateFunc: func(_, now any) { m.record(now) },
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watch crdmigrations: %w", context.Cause(ctx))
	}
	return m, nil
}

func (m *migrations) record(object any) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	migration := &v1alpha1.CRDMigration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, migration); err != nil {
		frame.Logf("read crdmigration %s: %v", u.GetName(), err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[migration.Name] = migration
	close(m.changed)
	m.changed = make(chan struct{})
}

// all reports whether a condition holds for the migration of each resource.
func (m *migrations) all(of []*widget.Resource, holds func(*widget.Resource, *v1alpha1.CRDMigration) bool) bool {
	return !m.any(of, func(r *widget.Resource, m *v1alpha1.CRDMigration) bool { return !holds(r, m) })
}

// any reports whether a condition holds for the migration of one of the resources.
func (m *migrations) any(of []*widget.Resource, holds func(*widget.Resource, *v1alpha1.CRDMigration) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(of, func(r *widget.Resource) bool { return holds(r, m.known[r.CRD()]) })
}

// await returns when a condition holds.
func (m *migrations) await(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, migrationTimeout, fmt.Errorf("not within %s", migrationTimeout))
	defer cancel()
	for {
		changed := m.next()
		if holds() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-changed:
		}
	}
}

// next returns a channel that is closed at the next change.
func (m *migrations) next() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// succeeded reports whether the migration to the current storage version is Ready.
func succeeded(r *widget.Resource, m *v1alpha1.CRDMigration) bool {
	return m != nil && m.Status.StorageVersion == r.Storage() && slices.Equal(m.Status.StoredVersions, []string{r.Storage()}) &&
		meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)
}

// writing reports whether objects are being written: a checkpoint is saved before the first write, and removed with the last.
func writing(r *widget.Resource, m *v1alpha1.CRDMigration) bool {
	return m != nil && m.Status.StorageVersion == r.Storage() && m.Status.Checkpoint != nil
}

func (m *migrations) awaitSuccess(ctx context.Context, of []*widget.Resource) error {
	return m.await(ctx, "every migration to succeed", func() bool { return m.all(of, succeeded) })
}

func (m *migrations) awaitWriting(ctx context.Context, of []*widget.Resource) error {
	return m.await(ctx, "objects to be written", func() bool { return m.any(of, writing) })
}
