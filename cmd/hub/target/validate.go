package target

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// maxSigningRequests is the number of CertificateSigningRequests of a cluster at which OCM's agent creates no further
// one.
const maxSigningRequests = 10

// bootstrapRoles are the ClusterRoles with which an account may register clusters: the import controller's, and OCM's
// own. The first that exists is used.
var bootstrapRoles = []string{
	"open-cluster-management:managedcluster:bootstrap:agent-registration",
	"open-cluster-management:bootstrap",
}

// ValidateTarget checks that the hub has none of the clusters and can have them. It writes
// nothing.
func (h Hub) ValidateTarget(ctx context.Context, clusters []string) (cluster.Result, error) {
	if _, err := h.bootstrapRole(ctx); err != nil {
		return cluster.Result{}, err
	}
	h.Hub = h.Pass().WithBatchReads(clusters)
	return h.Each(ctx, clusters, h.validate)
}

func (h Hub) validate(ctx context.Context, name string) (waits string, err error) {
	mc, err := h.Find(ctx, name)
	if err != nil {
		return "", err
	}
	switch {
	case mc == nil:
	case meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionJoined):
		return "", cluster.Fail(cluster.ReasonOtherCluster, "the target hub has a cluster %s that has joined%s: remove the cluster from the migration", name, identified(mc))
	default:
		return "", cluster.Fail(cluster.ReasonExists, "the target hub has a ManagedCluster %s that has never joined: delete it there if nothing needs it, or remove the cluster from the migration", name)
	}
	namespace := &corev1.Namespace{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return "", err
	} else if err == nil && !namespace.DeletionTimestamp.IsZero() {
		return "", cluster.Fail(cluster.ReasonBeingDeleted, "namespace %s of the target hub is being deleted: wait until it is gone, and start another migration", name)
	} else if err == nil {
		if err := h.checkEmpty(ctx, name); err != nil {
			return "", err
		}
	}
	return "", h.CheckRequests(ctx, name)
}

// CheckRequests refuses a cluster with so many CertificateSigningRequests on the hub that its agent makes no other.
func (h Hub) CheckRequests(ctx context.Context, name string) error {
	requests, err := h.SigningRequests(ctx, name)
	if err == nil && len(requests) >= maxSigningRequests {
		return cluster.Fail(cluster.ReasonTooManyRequests, "the target hub has %d CertificateSigningRequests of %s, and with %d its agent makes no other: kubectl delete csr -l %s=%s",
			len(requests), name, maxSigningRequests, clusterv1.ClusterNameLabelKey, name)
	}
	return err
}

// checkEmpty refuses a namespace with Secrets or ConfigMaps: those of a former life of the cluster have the names of objects that are to
// move, and what a user has there is deleted with the namespace, which OCM's controllers delete when the cluster leaves it again.
func (h Hub) checkEmpty(ctx context.Context, name string) error {
	found, err := h.UserObjects(ctx, name)
	if err != nil || len(found) == 0 {
		return err
	}
	names := make([]string, len(found))
	for i, o := range found {
		names[i] = o.String()
	}
	return cluster.Fail(cluster.ReasonNamespaceInUse, "namespace %s of the target hub has %s: move or delete them there, or remove the cluster from the migration", name, cluster.Few(names))
}

// claimID is the claim that identifies a cluster, whatever its name is.
const claimID = "id.k8s.io"

// identified is the identity of a cluster that has joined, for a message; empty without one.
func identified(mc *clusterv1.ManagedCluster) string {
	for _, claim := range mc.Status.ClusterClaims {
		if claim.Name == claimID {
			return fmt.Sprintf(" (%s %s)", claimID, claim.Value)
		}
	}
	return ""
}

func (h Hub) bootstrapRole(ctx context.Context) (string, error) {
	for _, name := range bootstrapRoles {
		err := h.Client.Get(ctx, client.ObjectKey{Name: name}, &rbacv1.ClusterRole{})
		if err == nil {
			return name, nil
		}
		if !apierrors.IsNotFound(err) {
			return "", err
		}
	}
	return "", cluster.Fail(cluster.ReasonNoRole, "the hub has neither ClusterRole %s nor %s, by which clusters register: install Open Cluster Management's hub there", bootstrapRoles[0], bootstrapRoles[1])
}
