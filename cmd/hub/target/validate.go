package target

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/objectname"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// maxSigningRequests is the number of CertificateSigningRequests of a cluster at which OCM's agent creates no further
// one.
const maxSigningRequests = 10

// ValidateTarget checks that the hub has none of the clusters and can have them. It writes
// nothing.
func (h Hub) ValidateTarget(ctx context.Context, clusters []string) (cluster.Result, error) {
	h.Hub = h.Pass().WithBatchReads(clusters)
	returns, err := h.returns(ctx)
	if err != nil {
		return cluster.Result{}, err
	}
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		err := h.validate(ctx, name)
		if o, ok := returns[objectname.Return(name)]; ok && err == nil {
			err = cluster.Fail(cluster.ReasonExists, "the target hub has %s, which a former migration of %s has left: delete it there", o, name)
		}
		return "", err
	})
}

func (h Hub) validate(ctx context.Context, name string) error {
	mc, err := h.Find(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case mc == nil:
	case isJoined(mc):
		return h.joined(mc, h.Identities[name])
	default:
		return cluster.Fail(cluster.ReasonExists, "the target hub has a ManagedCluster %s that has never joined: delete it there if nothing needs it, or remove the cluster from the migration", name)
	}
	namespace := &corev1.Namespace{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil && !namespace.DeletionTimestamp.IsZero() {
		return cluster.Fail(cluster.ReasonBeingDeleted, "namespace %s of the target hub is being deleted: wait until it is gone, and start another migration", name)
	} else if err == nil {
		if err := h.checkEmpty(ctx, name); err != nil {
			return err
		}
		if err := h.checkKinds(ctx, name); err != nil {
			return err
		}
	}
	return h.CheckRequests(ctx, name)
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

// checkKinds refuses a namespace with an object of a kind that moves: the one that is to move may have its name, and with a former cluster's
// host or deployment in its namespace, the target would not be as the source was.
func (h Hub) checkKinds(ctx context.Context, name string) error {
	var rules []resource.Rule
	for _, r := range h.MigrationRules() {
		if r.Group != "" && !r.ClusterScoped {
			r.References = nil
			rules = append(rules, r)
		}
	}
	found, err := h.Objects(ctx, name, rules)
	if err != nil || len(found) == 0 {
		return err
	}
	names := make([]string, len(found))
	for i, o := range found {
		names[i] = o.GetKind() + " " + o.GetName()
	}
	return cluster.Fail(cluster.ReasonNamespaceInUse, "namespace %s of the target hub has %s, of kinds that move with a cluster: delete them there without deprovisioning what they stand for, or remove the cluster from the migration",
		name, cluster.Few(names))
}

// returns has what migrations have left of the objects with which a cluster would return, by name. A user of a preflight may not list Secrets: the
// migration itself does.
func (h Hub) returns(ctx context.Context) (map[string]string, error) {
	imports, err := h.Imports()
	if err != nil || !imports {
		return nil, err
	}
	found := map[string]string{}
	for kind, in := range map[schema.GroupVersionKind]string{
		corev1.SchemeGroupVersion.WithKind("Secret"): h.BootstrapSecret("").Namespace, cluster.KlusterletConfigKind: "",
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := h.Client.List(ctx, list, client.InNamespace(in)); err != nil && (in == "" || !apierrors.IsForbidden(err)) {
			return nil, fmt.Errorf("list what migrations have left of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; strings.HasPrefix(o.Name, objectname.Return("")) {
				found[o.Name] = cluster.Name(h.Client, o)
			}
		}
	}
	return found, nil
}
