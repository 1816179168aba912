package storageversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/walk"
)

// Plan observes one CRD and decides what is to be done about it.
func (m *Migrator) Plan(ctx context.Context, crd string) (decision.Plan, error) {
	f, err := m.Observe(ctx, crd)
	if err != nil {
		return decision.Plan{}, err
	}
	return decision.PlanFor(f, m.options.Policy), nil
}

// Names lists the CRDs that match a label selector. An empty selector matches all.
func (m *Migrator) Names(ctx context.Context, selector string) ([]string, error) {
	names, err := m.client.CRDNames(ctx, selector)
	if err != nil {
		return nil, fmt.Errorf("list customresourcedefinitions: %w", err)
	}
	return names, nil
}

// Observe reads the facts about one CRD. It sends about ten small requests, or four
// if status.storedVersions shows that there is nothing to do. A [Preflight] adds some
// for each namespace. Observe changes nothing.
func (m *Migrator) Observe(ctx context.Context, crd string) (decision.Facts, error) {
	var f decision.Facts
	var err error
	if f.CRD, err = m.client.CRD(ctx, crd); err != nil {
		return f, crdReadError(crd, err)
	}
	if f.Checkpoint, err = m.options.Journal.Load(ctx, f.CRD); err != nil && !errors.As(err, &f.Newer) {
		return f, fmt.Errorf("load the checkpoint of %s: %w", crd, err)
	}
	if err := m.readObjectsOf(ctx, &f, kube.Trimmed(f.CRD) || m.options.CheckReadable); err != nil {
		return f, err
	}
	f.Now = m.client.Clock.Now()
	if kube.Trimmed(f.CRD) || m.options.Skips(decision.StorageVersionMigrationPhase) {
		if f.ManagedFields == decision.ManagedFieldsStale {
			err = m.checkCleanupPermission(ctx, &f)
		}
		return f, err
	}
	if err := m.observeAnswering(ctx, &f); err != nil {
		return f, err
	}
	if f.Servers, f.ServersUnread, err = m.servers(ctx); err != nil {
		return f, err
	}
	if f.ServersRead = f.ServersUnread == ""; f.ServersRead {
		f.Endpoints = len(m.endpoints(ctx))
	}
	m.observeLeases(f) // if a server with a stale lease is back when Run reads the leases, the history gives it the whole settle time
	others, err := m.otherMigrations(ctx)
	if err != nil {
		return f, err
	}
	others.addTo(&f)
	if f.Denied, err = m.denied(ctx, f.CRD); err != nil {
		return f, err
	}
	if !m.options.Write.OrDefault().PatchesObject() {
		if err := m.checkCleanupPermission(ctx, &f); err != nil {
			return f, err
		}
	}
	if len(f.Denied) > 0 {
		f.User = kube.UserName(ctx, m.client)
	}
	return f, m.preflight(ctx, &f)
}

// readObjectsOf counts the objects. It also scans them if [Options].Scan is set, and otherwise, if all
// is set, checks that the API server can read all of them. A list that the API server does not answer,
// or answers with an error, is a fact, not an error.
func (m *Migrator) readObjectsOf(ctx context.Context, f *decision.Facts, all bool) error {
	defer func() {
		if f.Unlisted != nil {
			f.Unlisted.Starting = f.Unlisted.ServedSoon(f.CRD, m.client.Clock.Now())
		}
	}()
	if f.Unlisted = decision.Unlisted(f.CRD, nil); f.Unlisted != nil || f.CRD.DeletionTimestamp != nil {
		return nil
	}
	var err error
	f.Objects, err = m.count(ctx, f.CRD)
	if err == nil && (f.Objects == nil || *f.Objects > 0) && !kube.Trimmed(f.CRD) {
		f.Unreachable, err = m.unreachable(ctx, f.CRD)
	}
	switch {
	case err != nil:
	case m.options.Scan:
		f.ManagedFields, err = m.scanManagedFields(ctx, f.CRD)
	case !all: // the run that follows lists them all
	case f.Objects == nil || *f.Objects > 1:
		err = m.checkReadable(ctx, f.CRD)
	}
	var answered apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &answered), errors.Is(err, quicklist.ErrOver):
		f.Unlisted = m.unlisted(ctx, f.CRD, err)
		return nil
	}
	return fmt.Errorf("list the objects of %s: %w", f.CRD.Name, err)
}

// count lists one object, and the API server adds how many follow. It returns nil if the API server does
// not say.
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

// unreachable lists a page of objects, and counts those of another scope than the CRD. Their keys are mixed with those of the other
// objects, so that a page does not show all of them; a run names each one.
func (m *Migrator) unreachable(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (u decision.Unreachable, err error) {
	if crd.Spec.Scope != apiextensionsv1.ClusterScoped {
		return u, nil // objects without a namespace are rare, and a page of a namespaced resource costs more
	}
	var list *metav1.PartialObjectMetadataList
	err = quicklist.Retry(ctx, func(ctx context.Context) (err error) {
		list, err = m.client.Objects(ctx, kube.ResourceOf(crd), convertedPage, "")
		return err
	})
	if err != nil {
		return u, err
	}
	for i := range list.Items {
		if o := &list.Items[i]; decision.OfOtherScope(crd, o.Namespace) {
			u.Objects++
			u.Example, u.More = cmp.Or(u.Example, walk.Key(o)), list.Continue != ""
		}
	}
	return u, nil
}

func (m *Migrator) servers(ctx context.Context) (servers []decision.Server, unread string, err error) {
	leases, err := m.client.IdentityLeases(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, err.Error(), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("list the API servers' identity leases: %w", err)
	}
	return settle.ServersOf(leases, m.client.Clock.Now()), "", nil
}

// checkSettled reads the API servers' leases, and returns a [decision.NotSettledError] until the change of
// the CRD has settled.
func (m *Migrator) checkSettled(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	if err := m.checkAnswering(ctx, crd); err != nil {
		return err
	}
	servers, _, err := m.servers(ctx)
	if err != nil {
		return err
	}
	now := m.client.Clock.Now()
	v := m.observeLeases(decision.Facts{CRD: crd, Servers: servers, Now: now})
	if v.Settled {
		return m.checkEachServer(ctx, crd)
	}
	return &decision.NotSettledError{Until: v.Until, Wait: v.Until.Sub(now), Servers: v.Waiting, Stale: v.Stale}
}

// observeLeases adds the leases to the history of the CRD, and decides whether the change has settled.
func (m *Migrator) observeLeases(f decision.Facts) settle.Settlement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.historyOf(f.CRD).Observe(f.CRD, f.Servers, f.Now, m.options.Terms())
}

// otherMigrations are the StorageVersionMigrations of a cluster, by resource.
type otherMigrations struct {
	running, succeeded map[schema.GroupResource][]decision.OtherMigration
}

// addTo adds the StorageVersionMigrations of one CRD to its facts.
func (o otherMigrations) addTo(f *decision.Facts) {
	resource := kube.ResourceOf(f.CRD).GroupResource()
	f.Migrations, f.Succeeded = o.running[resource], o.succeeded[resource]
}

// otherMigrations lists the StorageVersionMigrations that have not ended, or have succeeded.
func (m *Migrator) otherMigrations(ctx context.Context) (otherMigrations, error) {
	found := otherMigrations{map[schema.GroupResource][]decision.OtherMigration{}, map[schema.GroupResource][]decision.OtherMigration{}}
	for _, group := range storageMigrationGroups {
		var migrations []request.StorageVersionMigration
		err := quicklist.Retry(ctx, func(ctx context.Context) (err error) {
			migrations, err = m.client.StorageVersionMigrations(ctx, group)
			return err
		})
		if apierrors.IsForbidden(err) {
			continue // two migrators at once cost requests, never safety
		}
		if err != nil {
			return found, fmt.Errorf("list storageversionmigrations.%s: %w", group, err)
		}
		for _, s := range migrations {
			of := schema.GroupResource{Group: s.Spec.Resource.Group, Resource: s.Spec.Resource.Resource}
			o := decision.OtherMigration{
				Name: fmt.Sprintf("storageversionmigrations.%s/%s", group, s.Metadata.Name), Created: s.Metadata.CreationTimestamp.Time,
				Begun: len(s.Status.Conditions) > 0, Succeeded: s.Succeeded(),
			}
			switch {
			case !s.Ended():
				found.running[of] = append(found.running[of], o)
			case !o.Succeeded.IsZero():
				found.succeeded[of] = append(found.succeeded[of], o)
			}
		}
	}
	return found, nil
}

// denied returns the permissions that Run needs and the caller lacks, with one access review for each.
func (m *Migrator) denied(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) ([]decision.Grant, error) {
	return kube.Denied(ctx, m.client, RequiredPermissions(schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}, m.options))
}

// checkCleanupPermission sets f.CleanupDenied if the caller lacks the permission for the cleanup of
// managedFields.
func (m *Migrator) checkCleanupPermission(ctx context.Context, f *decision.Facts) error {
	if m.options.DryRun || m.options.Skips(decision.CleanupManagedFieldsPhase) {
		return nil
	}
	g := cleanupGrant(schema.GroupResource{Group: f.CRD.Spec.Group, Resource: f.CRD.Spec.Names.Plural})
	if ok, err := kube.Allowed(ctx, m.client, g); ok || err != nil {
		return err
	}
	f.CleanupDenied, f.User = &g, kube.UserName(ctx, m.client)
	return nil
}

// listOne makes a few attempts to list one object.
func (m *Migrator) listOne(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (list *metav1.PartialObjectMetadataList, err error) {
	err = quicklist.Retry(ctx, func(ctx context.Context) error {
		list, err = m.client.FirstObject(ctx, kube.ResourceOf(crd), quicklist.Limit)
		return err
	})
	return list, err
}

// convertedPage is small enough for a slow conversion webhook to convert within quicklist.Limit.
const convertedPage = 100

// checkReadable returns an error if the API server can't read every object, although it
// listed the first.
func (m *Migrator) checkReadable(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	r, pageObjects := kube.ResourceOf(crd), m.options.PageObjects
	if kube.ConversionWebhook(crd) != nil && (pageObjects <= 0 || pageObjects > convertedPage) {
		pageObjects = convertedPage
	}
	cached := func(ctx context.Context) error { return m.client.Cached(ctx, r, quicklist.Limit) }
	return listing.Lister(m.client.Objects).CheckReadable(ctx, r, cached, pageObjects)
}

// scanManagedFields reads objects until one has stale managedFields.
func (m *Migrator) scanManagedFields(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (decision.ManagedFields, error) {
	cleaner := managedfields.For(crd, m.client.Clock.Now)
	pages := walk.ListOptions{PageObjects: m.options.PageObjects, Attempts: quicklist.Attempts, Retry: quicklist.Transient}
	for page, err := range m.list().Objects(ctx, kube.ResourceOf(crd), pages) {
		if err != nil {
			return decision.ManagedFieldsUnknown, err
		}
		for _, o := range page.Items {
			if cleaner.Stale(o.ManagedFields) {
				return decision.ManagedFieldsStale, nil
			}
		}
	}
	return decision.ManagedFieldsClean, nil
}

// preflight tries the write, unless another blocker keeps it from being sent. A scan tries whether all objects keep their values,
// and the preflight whether some do.
func (m *Migrator) preflight(ctx context.Context, f *decision.Facts) error {
	if !m.canTry(*f) {
		return nil
	}
	var err error
	if m.options.Preflight != nil {
		if f.Preflight, err = m.options.Preflight(ctx, m.target(*f)); err != nil {
			return fmt.Errorf("preflight the write %s of %s: %w", m.options.Write.OrDefault(), f.CRD.Name, err)
		}
		f.RoundTrips = f.Preflight.RoundTrips
	}
	few := f.Objects != nil && *f.Objects <= countedLosses
	if m.options.Scan || f.RoundTrips.Loses() && few {
		f.RoundTrips, err = m.RoundTrips(ctx, f.CRD, false, nil)
	}
	return err
}

// countedLosses are so few objects that a user waits a few seconds for a plan to try all of them, once it is known that some
// lose values.
const countedLosses = 1000

// canTry reports whether the write can be sent. A dry run needs the permissions of the write
// itself.
func (m *Migrator) canTry(f decision.Facts) bool {
	resource := kube.ResourceOf(f.CRD)
	switch {
	case f.Unlisted != nil, f.CRD.DeletionTimestamp != nil:
		return false
	case !kube.Established(f.CRD), !kube.Serves(f.CRD, resource.Version), f.Lacks(resource.GroupResource()):
		return false
	}
	return m.options.Write.OrDefault().Subresource() == "" || kube.HasStatus(f.CRD)
}
