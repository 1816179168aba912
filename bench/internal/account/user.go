// Package account gives a process under measurement a user of its own, and counts in the API server the requests of that user.
//
// Read user.go, metrics.go, then requests.go.
package account

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// Godwit is the ServiceAccount that godwit runs as.
const Godwit = "godwit"

const (
	namespace = "default"
	// tokenSeconds is much longer than any measurement.
	tokenSeconds = 24 * 60 * 60
)

// userOf returns the user name of a ServiceAccount.
func userOf(name string) string { return "system:serviceaccount:" + namespace + ":" + name }

// AddUser creates a ServiceAccount that may do everything, and returns a configuration with its token, as a pod has. An
// administrator would be exempt from priority and fairness.
func AddUser(ctx context.Context, plane *controlplane.ControlPlane, name string) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return nil, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	accounts := clients.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if request, err = accounts.CreateToken(ctx, name, request, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(plane.Config())
	config.BearerToken = request.Status.Token
	return config, nil
}
