package storageversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// Facts are what was read about one CustomResourceDefinition and its
// surroundings. They are all that [PlanFor] decides on.
type Facts struct {
	CRD *apiextensionsv1.CustomResourceDefinition
	// Now is the API server's time of the reading.
	Now time.Time
	// Objects counts the custom resources; nil when they were not counted.
	Objects *int64
	// Unlisted says why the objects could not be counted, or not be scanned to the
	// last one; nil when they were listed.
	Unlisted *UnlistedError
	// ManagedFields is what a scan has found; empty without one.
	ManagedFields ManagedFields
	// Servers are the API servers with a valid identity lease.
	Servers []Server
	// ServersUnread says why the leases could not be read. Time alone decides
	// then when writing may begin.
	ServersUnread string
	// Denied are the rights a migration needs and the caller lacks.
	Denied []Grant
	// CleanupDenied is the right that only the cleanup of managedFields needs, and
	// the caller lacks.
	CleanupDenied *Grant
	// User is the name the API server knows the caller by.
	User string
	// Migrations names the StorageVersionMigrations of this resource, of
	// whatever migrator, that have not ended.
	Migrations []string
	// Checkpoint is where an earlier run stopped.
	Checkpoint Checkpoint
	// Preflight is what a preflight of the write has found; nil without one.
	Preflight *PreflightReport
}

// Server is an API server as its identity lease shows it.
type Server = settle.Server

// Grant is the permission for one verb on one resource.
type Grant = kube.Grant

// Names lists the CRDs that match a label selector, all of them for an
// empty one.
func (m *Migrator) Names(ctx context.Context, selector string) ([]string, error) {
	names, err := m.client.CRDNames(ctx, selector)
	if err != nil {
		return nil, fmt.Errorf("list customresourcedefinitions: %w", err)
	}
	return names, nil
}

// Observe reads the facts about one CRD, with about ten small requests;
// with four where its storedVersions show that there is nothing to do, and with
// some for each namespace with a [Preflight]. It changes nothing.
func (m *Migrator) Observe(ctx context.Context, crd string) (Facts, error) {
	var f Facts
	var err error
	if f.CRD, err = m.client.CRD(ctx, crd); err != nil {
		return f, notFound(crd, err)
	}
	if f.Checkpoint, err = m.options.Journal.Load(ctx, f.CRD); err != nil {
		return f, fmt.Errorf("load the checkpoint of %s: %w", crd, err)
	}
	if err := m.readObjectsOf(ctx, &f); err != nil {
		return f, err
	}
	f.Now = m.client.Clock.Now()
	if kube.Trimmed(f.CRD) || m.options.skips(StorageVersionMigrationPhase) {
		if f.ManagedFields == ManagedFieldsStale {
			err = m.askForCleanup(ctx, &f)
		}
		return f, err
	}
	if f.Servers, f.ServersUnread, err = m.servers(ctx); err != nil {
		return f, err
	}
	m.look(f) // a server whose lease is stale now gets the whole settle time, should it be back when Run looks
	if f.Migrations, err = m.migrations(ctx, f.CRD); err != nil {
		return f, err
	}
	if f.Denied, err = m.denied(ctx, f.CRD); err != nil {
		return f, err
	}
	if !m.options.Write.orDefault().patchesObject() {
		if err := m.askForCleanup(ctx, &f); err != nil {
			return f, err
		}
	}
	if len(f.Denied) > 0 {
		f.User = kube.UserName(ctx, m.client)
	}
	return f, m.preflight(ctx, &f)
}

// readObjectsOf counts the objects and, if asked for, scans them. A list that the
// API server does not answer, or answers with an error, is a fact like any other.
func (m *Migrator) readObjectsOf(ctx context.Context, f *Facts) error {
	defer func() {
		if f.Unlisted != nil {
			f.Unlisted.Starting = f.Unlisted.starting(f.CRD, m.client.Clock.Now())
		}
	}()
	if f.Unlisted = unserved(f.CRD); f.Unlisted != nil || f.CRD.DeletionTimestamp != nil {
		return nil
	}
	var err error
	f.Objects, err = m.count(ctx, f.CRD)
	switch {
	case err != nil:
	case m.options.Scan:
		f.ManagedFields, err = m.scanManagedFields(ctx, f.CRD)
	case !kube.Trimmed(f.CRD) && m.options.Preflight == nil: // the run that follows lists them all
	case f.Objects == nil || *f.Objects > 1:
		err = m.readsAll(ctx, kube.ResourceOf(f.CRD))
	}
	var answered apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &answered), errors.Is(err, quicklist.ErrOver):
		f.Unlisted = unlisted(f.CRD, err)
		return nil
	}
	return fmt.Errorf("list the objects of %s: %w", f.CRD.Name, err)
}

// count asks for one object and for how many follow.
func (m *Migrator) count(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (*int64, error) {
	list, err := m.listOne(ctx, crd)
	if err != nil {
		return nil, err
	}
	after := kube.Remaining(list)
	if after == kube.UnknownCount {
		return nil, nil //nolint:nilnil // the server does not say how many there are
	}
	return new(int64(len(list.Items)) + after), nil
}

// leaseGrant is the right to see which API servers there are.
var leaseGrant = Grant{
	Verb: "list", Namespace: metav1.NamespaceSystem,
	Resource: schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"},
}

func (m *Migrator) servers(ctx context.Context) (servers []Server, unread string, err error) {
	leases, err := m.client.IdentityLeases(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, err.Error(), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("list the API servers' identity leases: %w", err)
	}
	return settle.ServersOf(leases, m.client.Clock.Now()), "", nil
}

// storageMigrationGroups serve a kind StorageVersionMigration: Kubernetes'
// own, and kube-storage-version-migrator's.
var storageMigrationGroups = []string{"storagemigration.k8s.io", "migration.k8s.io"}

func (m *Migrator) migrations(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	var names []string
	for _, group := range storageMigrationGroups {
		migrations, err := m.client.StorageVersionMigrations(ctx, group)
		if apierrors.IsForbidden(err) {
			continue // two migrators at once cost requests, never safety
		}
		if err != nil {
			return nil, fmt.Errorf("list storageversionmigrations.%s: %w", group, err)
		}
		for _, s := range migrations {
			of := s.Spec.Resource
			if of.Group == crd.Spec.Group && of.Resource == crd.Spec.Names.Plural && !s.Ended() {
				names = append(names, fmt.Sprintf("storageversionmigrations.%s/%s", group, s.Metadata.Name))
			}
		}
	}
	return names, nil
}

// denied asks, right by right, what Run is going to need.
func (m *Migrator) denied(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) ([]Grant, error) {
	var denied []Grant
	for _, g := range RequiredPermissions(schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}, m.options) {
		ok, err := kube.Allowed(ctx, m.client, g)
		if err != nil {
			return nil, err
		}
		if !ok {
			denied = append(denied, g)
		}
	}
	return denied, nil
}

// askForCleanup asks for the right that a cleanup needs, where no write needs it.
func (m *Migrator) askForCleanup(ctx context.Context, f *Facts) error {
	if m.options.DryRun || m.options.skips(CleanupManagedFieldsPhase) {
		return nil
	}
	g := cleanupGrant(schema.GroupResource{Group: f.CRD.Spec.Group, Resource: f.CRD.Spec.Names.Plural})
	if ok, err := kube.Allowed(ctx, m.client, g); ok || err != nil {
		return err
	}
	f.CleanupDenied, f.User = &g, kube.UserName(ctx, m.client)
	return nil
}
