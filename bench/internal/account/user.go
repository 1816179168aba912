// Package account gives a process under measurement a user of its own, and counts in
// the API server what that user asks for.
//
// Read user.go, then requests.go.
package account

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// Godwit is the user that godwit runs as. It has a ServiceAccount's name, whose
// requests have a priority level: an administrator is exempt from it.
const Godwit = "system:serviceaccount:default:godwit"

// AddUser makes a user that may do everything, at the priority of a ServiceAccount.
// The name is for the objects that this takes.
func AddUser(ctx context.Context, plane *controlplane.ControlPlane, name, user string) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return nil, err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return plane.AddUser(user, "system:serviceaccounts")
}
