package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// ClusterManager is the name of the ClusterManager of a hub.
const ClusterManager = "cluster-manager"

// registrationRules are what the registration agent of a cluster needs until it has its certificate, if the hub has its ManagedCluster. The agent uses
// no kubeconfig that may not create ManagedClusters, and creates none where there is one. The webhook of Open Cluster Management denies the
// creation: each ManagedCluster is in a ManagedClusterSet, if only the default one, and the account may join none.
func registrationRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "create"}},
		{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}},
	}
}

// GrantRegistration grants the bootstrap account the permission to register clusters. [Hub.AwaitRegistration] approves their requests: automatic
// approval by the hub's controllers would approve the requests of the account for every cluster. It returns what it waits for, or empty.
func (h Hub) GrantRegistration(ctx context.Context) (waits string, err error) {
	if err := h.replaceBinding(ctx); err != nil {
		return "", err
	}
	role := h.role()
	if err := cluster.Share(ctx, h.Client, role, h.UID, func() error {
		role.Rules = registrationRules()
		return nil
	}); err != nil {
		return "", h.grantFailed(err)
	}
	binding := h.binding()
	if err := cluster.Share(ctx, h.Client, binding, h.UID, func() error {
		binding.RoleRef = h.roleRef()
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: h.Account.Namespace, Name: h.Account.Name}}
		return nil
	}); err != nil {
		return "", h.grantFailed(err)
	}
	return "", nil
}

func (h Hub) grantFailed(err error) error {
	return fmt.Errorf("grant the permissions of bootstrap account %s: %w", h.Account, err)
}

// replaceBinding replaces the binding of an agent of v0.1.0, which grants a role of the hub: a binding keeps its role for life. The migrations that
// began with it keep sharing it.
func (h Hub) replaceBinding(ctx context.Context) error {
	binding := h.binding()
	err := h.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding)
	if err != nil || binding.RoleRef == h.roleRef() || !cluster.IsShared(binding) {
		return client.IgnoreNotFound(err)
	}
	role := h.role()
	role.Labels, role.Annotations, role.Rules = binding.Labels, binding.Annotations, registrationRules()
	if err := h.Client.Create(ctx, role); err != nil && !apierrors.IsAlreadyExists(err) {
		return h.grantFailed(err)
	}
	replaced := h.binding()
	replaced.Labels, replaced.Annotations, replaced.Subjects, replaced.RoleRef = binding.Labels, binding.Annotations, binding.Subjects, h.roleRef()
	if err := cluster.Delete(ctx, h.Client, binding); err != nil {
		return h.grantFailed(err)
	}
	if err := h.Client.Create(ctx, replaced); err != nil {
		return h.grantFailed(err)
	}
	return nil
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

func (h Hub) registerName() string { return h.sharedName() + "-register" }

func (h Hub) roleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: h.registerName()}
}

// role returns the role of the bootstrap account, without its rules.
func (h Hub) role() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.registerName()}}
}

func (h Hub) binding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: h.registerName()}}
}

// granted returns the objects by which the account has its permissions, and those of v0.1.0.
func (h Hub) granted() []client.Object {
	reviews := metav1.ObjectMeta{Name: h.sharedName() + "-reviews"}
	return []client.Object{h.binding(), h.role(), &rbacv1.ClusterRoleBinding{ObjectMeta: reviews}, &rbacv1.ClusterRole{ObjectMeta: reviews}}
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
