package chart_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// TestCreatorPolicy: a user may create a migration only with permission to update the ManagedClusters of both hubs. The refusal names what
// the user lacks. A migration that has not started can't be given another hub or other clusters either.
//
// Matrix: H113.
func TestCreatorPolicy(t *testing.T) {
	c := newCluster(t)
	crds, err := controlplane.ReadCRDs("../../hub/api/v1alpha1/crd/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.InstallCRDs(t.Context(), c.plane.Config(), crds...); err != nil {
		t.Fatal(err)
	}
	var policy []*unstructured.Unstructured
	for _, o := range render(t, "godwit", "clusterMigration: {kafka: {brokers: ['kafka:9092']}}\noperator: {features: {clusterMigration: true}}") {
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
			policy = append(policy, o)
		}
	}
	if len(policy) != 2 {
		t.Fatalf("%d objects of the policy, want the policy and its binding", len(policy))
	}
	c.apply(policy)
	t.Cleanup(func() { // other tests have the same control plane
		for _, o := range policy {
			if err := c.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		}
	})

	c.grant("creator-nothing", "managedclustermigrations", hubapi.GroupVersion.Group, nil)
	for _, user := range []string{"creator-from", "creator-both"} {
		c.grant(user, "managedclustermigrations", hubapi.GroupVersion.Group, nil)
	}
	c.grant("creator-from", "managedclusters", "cluster.open-cluster-management.io", []string{"hub1"})
	c.grant("creator-both", "managedclusters", "cluster.open-cluster-management.io", []string{"hub1", "hub2"})

	scheme := runtime.NewScheme()
	if err := hubapi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	as := func(user string) client.Client {
		cfg := rest.CopyConfig(c.cfg)
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
		own, err := client.New(cfg, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		return own
	}
	create := func(user string) (*hubapi.ManagedClusterMigration, error) {
		m := &hubapi.ManagedClusterMigration{
			ObjectMeta: metav1.ObjectMeta{GenerateName: user + "-", Namespace: "default"},
			Spec:       hubapi.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClusters: []hubapi.ClusterName{"c1"}},
		}
		return m, as(user).Create(t.Context(), m)
	}
	await(t, "the policy to be in force", func() bool {
		_, err := create("creator-nothing")
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "user creator-nothing may not update ManagedCluster hub1, the hub of spec.from")
	})
	if _, err := create("creator-from"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "user creator-from may not update ManagedCluster hub2, the hub of spec.to") ||
		!strings.Contains(err.Error(), "kubectl create clusterrole") {
		t.Errorf("a user of one hub: %v, want a refusal that names the other hub and the command", err)
	}
	m, err := create("creator-both")
	if err != nil {
		t.Fatalf("a user of both hubs: %v", err)
	}
	m.Spec.To = "hub3"
	if err := as("creator-both").Update(t.Context(), m); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ManagedCluster hub3") {
		t.Errorf("another hub, before the start: %v, want a refusal that names it", err)
	}
	m.Spec.To, m.Spec.IncludedManagedClusters = "hub2", []hubapi.ClusterName{"c1", "c2"}
	if err := as("creator-nothing").Update(t.Context(), m); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "user creator-nothing may not update ManagedCluster hub1") {
		t.Errorf("other clusters, before the start: %v, want a refusal", err)
	}
	m.Spec.IncludedManagedClusters, m.Labels = []hubapi.ClusterName{"c1"}, map[string]string{"team": "a"}
	if err := as("creator-nothing").Update(t.Context(), m); err != nil {
		t.Errorf("a change of metadata, such as a finalizer: %v", err)
	}
}

// grant lets a user do everything with a resource, or update objects of it by name.
func (c *cluster) grant(user, resource, group string, names []string) {
	c.t.Helper()
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"*"}}
	if len(names) > 0 {
		rule.Verbs, rule.ResourceNames = []string{"update"}, names
	}
	name := user + "-" + resource
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		},
	} {
		if err := c.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
	}
}
