package direct

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/internal/format"
)

// LabelMigration is on the ConfigMaps that have a migration each.
const LabelMigration = "godwit.dev/direct-migration"

const (
	// dataMigration is the key of such a ConfigMap with the migration as JSON.
	dataMigration = "migration"
	// nameSuffix follows the name of a migration in the name of its ConfigMap.
	nameSuffix = "-migration"
)

// Store is a client of the source hub, for which each migration is a ConfigMap in one namespace. The UID and the resourceVersion of a
// migration are those of its ConfigMap. Only what package manager and the commands do with migrations works: get, list,
// create, update and patch.
type Store struct {
	client.Client
	namespace string
}

// NewStore returns the store in a namespace of a hub.
func NewStore(hub client.Client, namespace string) *Store { return &Store{hub, namespace} }

func configMapKey(key types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name + nameSuffix}
}

// asMigration returns a status error about a ConfigMap as one about its migration.
func asMigration(err error, name string) error {
	resource := api.GroupVersion.WithResource("managedclustermigrations").GroupResource()
	switch {
	case apierrors.IsNotFound(err):
		return apierrors.NewNotFound(resource, name)
	case apierrors.IsAlreadyExists(err):
		return apierrors.NewAlreadyExists(resource, name)
	case apierrors.IsConflict(err):
		return apierrors.NewConflict(resource, name, err)
	}
	return err
}

// read reads a migration out of its ConfigMap.
func read(from *corev1.ConfigMap, m *api.ManagedClusterMigration) error {
	what := fmt.Sprintf("ConfigMap %s/%s", from.Namespace, from.Name)
	if err := format.CheckData(what, from.Data); err != nil {
		return fmt.Errorf("%w; %s", err, format.Do)
	}
	repair := fmt.Sprintf("restore it from a backup, or delete it, and with it what is known of the migration: kubectl -n %s delete configmap %s", from.Namespace, from.Name)
	if !strings.HasSuffix(from.Name, nameSuffix) {
		return fmt.Errorf("%s has label %s, and its name does not end in %s, so that it has no migration: another client has written it; %s", what, LabelMigration, nameSuffix, repair)
	}
	*m = api.ManagedClusterMigration{}
	if err := json.Unmarshal([]byte(from.Data[dataMigration]), m); err != nil {
		return fmt.Errorf("read the migration in key %s of %s: %w; %s", dataMigration, what, err, repair)
	}
	identify(m, from)
	return nil
}

// identify gives a migration the identity of its ConfigMap.
func identify(m *api.ManagedClusterMigration, from *corev1.ConfigMap) {
	m.Namespace = from.Namespace
	m.Name, _ = strings.CutSuffix(from.Name, nameSuffix)
	m.UID, m.ResourceVersion, m.CreationTimestamp = from.UID, from.ResourceVersion, from.CreationTimestamp
}

// unreadable returns what is known of a migration whose ConfigMap can't be read: its identity, and its spec if that is readable.
func unreadable(from *corev1.ConfigMap, why error) api.ManagedClusterMigration {
	m := api.ManagedClusterMigration{}
	var parts struct {
		Spec json.RawMessage `json:"spec"`
	}
	if json.Unmarshal([]byte(from.Data[dataMigration]), &parts) == nil && json.Unmarshal(parts.Spec, &m.Spec) != nil {
		m.Spec = api.ManagedClusterMigrationSpec{}
	}
	identify(&m, from)
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, manager.AnnotationUnreadable, why.Error())
	reason := cmp.Or(manager.WhyUnreadable(why), api.ReasonStateLost)
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason.Name, Message: why.Error()})
	return m
}

// write returns the ConfigMap of a migration.
func write(m *api.ManagedClusterMigration) (*corev1.ConfigMap, error) {
	key := configMapKey(client.ObjectKeyFromObject(m))
	to := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Labels: map[string]string{LabelMigration: m.Name},
	}}
	content := m.DeepCopy()
	content.UID, content.ResourceVersion = "", ""
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode migration %s: %w", m.Name, err)
	}
	to.Data = map[string]string{dataMigration: string(text), format.Key: fmt.Sprint(format.Current)}
	return to, nil
}

// Get implements client.Reader.
func (s *Store) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	m, ok := o.(*api.ManagedClusterMigration)
	if !ok {
		return s.Client.Get(ctx, key, o, opts...)
	}
	from := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, configMapKey(key), from, opts...); err != nil {
		return asMigration(err, key.Name)
	}
	return read(from, m)
}

// List implements client.Reader. A migration that can't be read is in the list as [Migrations] returns it.
func (s *Store) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	to, ok := list.(*api.ManagedClusterMigrationList)
	if !ok {
		return s.Client.List(ctx, list, opts...)
	}
	from := &corev1.ConfigMapList{}
	if err := s.Client.List(ctx, from, append(slices.Clone(opts), client.InNamespace(s.namespace), client.HasLabels{LabelMigration})...); err != nil {
		return err
	}
	to.Items = Migrations(from)
	return nil
}

// Migrations returns the migrations in ConfigMaps that have the [LabelMigration]. One that can't be read stalls alone: it has
// [manager.AnnotationUnreadable], condition Stalled says why, and it keeps the clusters of its spec.
func Migrations(from *corev1.ConfigMapList) []api.ManagedClusterMigration {
	all := make([]api.ManagedClusterMigration, len(from.Items))
	for i := range from.Items {
		if err := read(&from.Items[i], &all[i]); err != nil {
			all[i] = unreadable(&from.Items[i], err)
		}
	}
	return all
}

// Create implements client.Writer.
func (s *Store) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	m, ok := o.(*api.ManagedClusterMigration)
	if !ok {
		return s.Client.Create(ctx, owned(o), opts...)
	}
	to, err := write(m)
	if err != nil {
		return err
	}
	if err := s.Client.Create(ctx, to, opts...); err != nil {
		return asMigration(err, m.Name)
	}
	return read(to, m)
}

// Update implements client.Writer.
func (s *Store) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	m, ok := o.(*api.ManagedClusterMigration)
	if !ok {
		return s.Client.Update(ctx, owned(o), opts...)
	}
	to, err := write(m)
	if err != nil {
		return err
	}
	if err := s.Client.Update(ctx, to, opts...); err != nil {
		return asMigration(err, m.Name)
	}
	return read(to, m)
}

// Patch implements client.Writer. The patch of a migration is a merge patch.
func (s *Store) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	m, ok := o.(*api.ManagedClusterMigration)
	if !ok {
		return s.Client.Patch(ctx, o, p, opts...)
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	for {
		known := &api.ManagedClusterMigration{}
		if err := s.Get(ctx, client.ObjectKeyFromObject(o), known); err != nil {
			return err
		}
		next, err := patched(known, data)
		if err != nil {
			return err
		}
		locked := next.ResourceVersion != known.ResourceVersion
		if err := s.Update(ctx, next); err != nil && (locked || !apierrors.IsConflict(err) || ctx.Err() != nil) {
			return err
		} else if err == nil {
			*m = *next
			return nil
		}
	}
}

// patched applies a merge patch.
func patched(m *api.ManagedClusterMigration, patch []byte) (*api.ManagedClusterMigration, error) {
	before, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, fmt.Errorf("patch migration %s: %w", m.Name, err)
	}
	next := &api.ManagedClusterMigration{}
	return next, json.Unmarshal(after, next)
}

// Status implements client.StatusClient: the status of a migration is in the same ConfigMap.
func (s *Store) Status() client.SubResourceWriter { return statusWriter{s.Client.Status(), s} }

type statusWriter struct {
	client.SubResourceWriter
	store *Store
}

// Update implements client.SubResourceWriter.
func (w statusWriter) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if m, ok := o.(*api.ManagedClusterMigration); ok {
		return w.store.Update(ctx, m)
	}
	return w.SubResourceWriter.Update(ctx, o, opts...)
}

// Patch implements client.SubResourceWriter.
func (w statusWriter) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if m, ok := o.(*api.ManagedClusterMigration); ok {
		return w.store.Patch(ctx, m, p)
	}
	return w.SubResourceWriter.Patch(ctx, o, p, opts...)
}

// owned makes the ConfigMap of a migration the owner of what the migration owns. The garbage collector would not find the
// migration itself.
func owned(o client.Object) client.Object {
	refs := o.GetOwnerReferences()
	for i := range refs {
		if refs[i].Kind == "ManagedClusterMigration" {
			refs[i].APIVersion, refs[i].Kind, refs[i].Name = "v1", "ConfigMap", refs[i].Name+nameSuffix
		}
	}
	o.SetOwnerReferences(refs)
	return o
}
