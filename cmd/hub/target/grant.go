package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// ClusterManager is the name of the ClusterManager of a hub.
const ClusterManager = "cluster-manager"

// GrantRegistration grants the bootstrap account the permission to register clusters. [Hub.AwaitRegistration] approves their requests: automatic
// approval by the hub's controllers would approve the requests of the account for every cluster. It returns what it waits for, or empty.
func (h Hub) GrantRegistration(ctx context.Context) (waits string, err error) {
	role, err := h.bootstrapRole(ctx)
	if err != nil {
		return "", err
	}
	reviews := h.reviewRole()
	if err := cluster.Share(ctx, h.Client, reviews, h.UID, func() error {
		// A cluster that registers checks its own permissions.
		reviews.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}}}
		return nil
	}); err != nil {
		return "", fmt.Errorf("grant the permissions of bootstrap account %s: %w", h.Account, err)
	}
	for _, binding := range h.bindings() {
		if err := cluster.Share(ctx, h.Client, binding, h.UID, func() error {
			if binding.RoleRef.Name == "" { // it is immutable
				binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
				if binding.Name == reviews.Name {
					binding.RoleRef.Name = reviews.Name
				}
			}
			binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: h.Account.Namespace, Name: h.Account.Name}}
			return nil
		}); err != nil {
			return "", fmt.Errorf("grant the permissions of bootstrap account %s: %w", h.Account, err)
		}
	}
	return "", nil
}

// user returns the user name of the bootstrap account.
func (h Hub) user() string {
	return "system:serviceaccount:" + h.Account.Namespace + ":" + h.Account.Name
}

// sharedName returns the name of the objects that migrations with the same account share.
func (h Hub) sharedName() string {
	sum := sha256.Sum256([]byte(h.Account.String()))
	return "godwit-migration-" + hex.EncodeToString(sum[:8])
}

func (h Hub) reviewRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.sharedName() + "-reviews"}}
}

// bindings returns the bindings to the role for registration and to the role for access reviews.
func (h Hub) bindings() []*rbacv1.ClusterRoleBinding {
	return []*rbacv1.ClusterRoleBinding{
		{ObjectMeta: metav1.ObjectMeta{Name: h.sharedName() + "-register"}},
		{ObjectMeta: metav1.ObjectMeta{Name: h.sharedName() + "-reviews"}},
	}
}

// clusterManager reads the ClusterManager, or returns nil on a hub without one.
func (h Hub) clusterManager(ctx context.Context) (*operatorv1.ClusterManager, error) {
	m := &operatorv1.ClusterManager{}
	err := h.Client.Get(ctx, client.ObjectKey{Name: ClusterManager}, m)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return m, err
}
