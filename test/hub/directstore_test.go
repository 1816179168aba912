package hub_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
)

// newStore makes a namespace, and a migration in its store.
func newStore(t *testing.T) (*direct.Store, *api.ManagedClusterMigration) {
	t.Helper()
	c := hubClient(t, shared.Config())
	namespace := "store-" + newName()
	if err := direct.Prepare(t.Context(), c, namespace); err != nil {
		t.Fatal(err)
	}
	m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "move"}}
	m.Spec = api.ManagedClusterMigrationSpec{From: "a", To: "b", IncludedManagedClusters: []api.ClusterName{"c1"}}
	s := direct.NewStore(c, namespace)
	if err := s.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return s, m
}

// TestStoreHasMigrationsAsAnAPIServerHas: two clients of the store never overwrite each other, and errors are about the migration.
func TestStoreHasMigrationsAsAnAPIServerHas(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	key := client.ObjectKeyFromObject(m)
	if m.UID == "" || m.ResourceVersion == "" || m.CreationTimestamp.IsZero() {
		t.Fatalf("the migration has no identity: %+v", m.ObjectMeta)
	}
	again := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	if err := s.Create(t.Context(), again); !apierrors.IsAlreadyExists(err) || !strings.Contains(err.Error(), `"move"`) {
		t.Errorf("the second creation returns %v", err)
	}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: "other"}, again); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("an unknown migration: %v", err)
	}
	old := m.DeepCopy()
	m.Status.Phase = api.PhaseValidating
	if err := s.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	stale := old.DeepCopy()
	stale.Status.Phase = api.PhaseFailed
	if err := s.Status().Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("the update of an old version returns %v", err)
	}
	locked := old.DeepCopy()
	locked.Finalizers = []string{"example.com/one"}
	if err := s.Patch(t.Context(), locked, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("the patch of an old version with a lock returns %v", err)
	}
	asks := old.DeepCopy()
	asks.Annotations = map[string]string{api.RequestAnnotation: api.RequestRollback}
	if err := s.Patch(t.Context(), asks, client.MergeFrom(old)); err != nil {
		t.Fatal(err)
	}
	if asks.Status.Phase != api.PhaseValidating {
		t.Errorf("the patch of an old version without a lock returns phase %q", asks.Status.Phase)
	}
	list := &api.ManagedClusterMigrationList{}
	if err := s.List(t.Context(), list, client.InNamespace(m.Namespace)); err != nil || len(list.Items) != 1 {
		t.Fatalf("the list has %d migrations, %v", len(list.Items), err)
	}
	got := list.Items[0]
	if got.Status.Phase != api.PhaseValidating || got.Annotations[api.RequestAnnotation] != api.RequestRollback || len(got.Finalizers) > 0 || got.UID != m.UID || client.ObjectKeyFromObject(&got) != key {
		t.Errorf("the store has %+v", got)
	}
}

// TestStoreOwnsForTheMigration: the garbage collector knows the ConfigMap of a migration, and not the migration.
func TestStoreOwnsForTheMigration(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: "state", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, api.GroupVersion.WithKind("ManagedClusterMigration"))},
	}}
	if err := s.Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	owner := metav1.GetControllerOf(owned)
	if owner == nil || owner.APIVersion != "v1" || owner.Kind != "ConfigMap" || owner.Name != "move-migration" || owner.UID != m.UID {
		t.Errorf("the owner is %+v", owner)
	}
	known := &corev1.ConfigMap{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}, known); err != nil || known.UID != owner.UID {
		t.Errorf("the ConfigMap of the migration has UID %s, %v", known.UID, err)
	}
}

// TestStoreRefusesANewerFormat: a migration that a newer release has written is neither read nor overwritten.
func TestStoreRefusesANewerFormat(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	known := &corev1.ConfigMap{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: "move-migration"}, known); err != nil {
		t.Fatal(err)
	}
	known.Data["format"] = "2"
	if err := s.Client.Update(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	err := s.Get(t.Context(), client.ObjectKeyFromObject(m), &api.ManagedClusterMigration{})
	if err == nil || !strings.Contains(err.Error(), "a newer release wrote it") {
		t.Errorf("reading it returns %v", err)
	}
}

// TestHubsHaveNamesOfTheirOwn: a hub has the same ID under each name of its context, and two hubs never have the same name.
func TestHubsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	one, err := direct.IDOf(t.Context(), hubClient(t, shared.Config()), direct.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	other, err := direct.IDOf(t.Context(), hubClient(t, second.Config()), direct.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for context, want := range map[string]string{"east": "east-", "admin@East.example.com:6443": "admin-east-example-com-6443-", "___": "hub-", strings.Repeat("x", 80): strings.Repeat("x", 30) + "-"} {
		name := one.Name(context)
		if name != want+string(one) || !one.Is(name) || other.Is(name) || len(name) > 63 {
			t.Errorf("context %q is hub %q", context, name)
		}
	}
}
