package hub_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// narrow takes the permissions for all Secrets and ConfigMaps of its hub from an agent, and grants them in the namespaces of the clusters that
// move, as docs/explanation/hub-security.md says.
func (m *move) narrow(s *hubSide) {
	m.t.Helper()
	user := "agent-of-" + s.name
	role := &rbacv1.ClusterRole{}
	if err := s.c.Get(m.t.Context(), client.ObjectKey{Name: user}, role); err != nil {
		m.t.Fatal(err)
	}
	all := len(role.Rules)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Equal(r.APIGroups, []string{""}) && (slices.Contains(r.Resources, "secrets") || slices.Contains(r.Resources, "configmaps"))
	})
	if len(role.Rules) != all-2 {
		m.t.Fatalf("%d rules for all Secrets and ConfigMaps, want 2", all-len(role.Rules))
	}
	if err := s.c.Update(m.t.Context(), role); err != nil {
		m.t.Fatal(err)
	}
	moves := []string{"get", "list", "create", "update", "patch", "delete"}
	rules := map[string][]rbacv1.PolicyRule{bootstrapNamespace: {
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"bootstrap-" + m.target.name}, Verbs: []string{"get", "update", "patch", "delete"}},
	}}
	for _, one := range m.sites {
		rules[one.name] = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: moves}}
	}
	for namespace, list := range rules {
		metadata := metav1.ObjectMeta{Namespace: namespace, Name: user + "-narrowed"}
		for _, o := range []client.Object{
			&rbacv1.Role{ObjectMeta: metadata, Rules: list},
			&rbacv1.RoleBinding{
				ObjectMeta: metadata, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: metadata.Name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
			},
		} {
			if err := s.c.Create(m.t.Context(), o); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

// TestNarrowedAgent: the agent of the source may read Secrets and ConfigMaps in the namespaces of the clusters alone, which are as many as it would
// read at once. The clusters move, and the agent reads no other Secret.
//
// Matrix: H118.
func TestNarrowedAgent(t *testing.T) {
	t.Parallel()
	m := newMove(t, 9)
	before := m.objects()
	stays := newSite(t)
	m.narrow(m.source)
	agent := hubClient(t, m.source.config)
	m.await("the narrowed permissions to be in force", func() bool {
		return apierrors.IsForbidden(agent.List(t.Context(), &corev1.SecretList{}, client.InNamespace(stays.name)))
	})
	m.run(m.source)
	m.run(m.target)
	m.start()
	m.mustEnd(api.PhaseCompleted)
	for _, s := range m.sites {
		m.moved(s, before[s.name])
	}
}
