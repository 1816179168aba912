package permission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSubjectOf(t *testing.T) {
	for user, want := range map[string]rbacv1.Subject{
		"alice":                           {APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "alice"},
		"system:serviceaccount:ci:robot":  {Kind: "ServiceAccount", Namespace: "ci", Name: "robot"},
		"system:serviceaccount":           {APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "system:serviceaccount"},
		"system:serviceaccounts:ci:robot": {APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "system:serviceaccounts:ci:robot"},
		"a:b":                             {APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "a:b"},
	} {
		if diff := cmp.Diff(want, Subject(user)); diff != "" {
			t.Errorf("Subject(%q) (-want +got):\n%s", user, diff)
		}
	}
}

func TestPermissionAsText(t *testing.T) {
	p := Permission{
		Verbs: []string{"get", "patch"}, Resource: schema.GroupResource{Group: "example.com", Resource: "widgets/status"},
		Names: []string{"a", "b"}, Namespace: "shop",
	}
	if got, want := p.String(), "get, patch widgets.example.com/status a, b in namespace shop"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}
