package cluster

import (
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WithBatchReads returns the hub for one pass. It reads the ManagedClusters, leases and CertificateSigningRequests of
// all clusters with one request each, when the first of them is needed. The results are as old as the pass; deletions
// use [Hub.Live].
func (h Hub) WithBatchReads(clusters []string) Hub {
	h.batchReads = newBatchReads(len(clusters))
	return h
}

// Live returns the hub without batch reads.
func (h Hub) Live() Hub {
	h.batchReads = nil
	return h
}

// Find reads a ManagedCluster, or returns nil if it does not exist.
func (h Hub) Find(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	if h.batchReads != nil {
		found, all, err := h.batchReads.clusters.get(name, func(limit int64) ([]clusterv1.ManagedCluster, bool, error) {
			list := &clusterv1.ManagedClusterList{}
			err := h.Client.List(ctx, list, client.Limit(limit))
			return list.Items, list.Continue != "", err
		}, func(mc *clusterv1.ManagedCluster) string { return mc.Name })
		if err != nil || all {
			return first(found).DeepCopy(), err
		}
	}
	mc := &clusterv1.ManagedCluster{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return mc, nil
}

// lease reads the lease of a cluster, or returns nil if it does not exist.
func (h Hub) lease(ctx context.Context, cluster string) (*coordinationv1.Lease, error) {
	if h.batchReads != nil {
		found, all, err := h.batchReads.leases.get(cluster, func(limit int64) ([]coordinationv1.Lease, bool, error) {
			list := &coordinationv1.LeaseList{}
			// With this selector, a Role that names the Lease allows the list.
			err := h.Client.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: LeaseName}, client.Limit(limit))
			return list.Items, list.Continue != "", err
		}, func(l *coordinationv1.Lease) string { return l.Namespace })
		if err != nil || all {
			return first(found), err
		}
	}
	lease := &coordinationv1.Lease{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: LeaseName}, lease); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return lease, nil
}

// first returns the only object of a cluster, or nil.
func first[T any](found []T) *T {
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

// AddOns reads the metadata of the ManagedClusterAddOns of a cluster. There are none on a hub without the kind.
func (h Hub) AddOns(ctx context.Context, cluster string) ([]metav1.PartialObjectMetadata, error) {
	kind, err := h.served(AddOnKind.GroupKind())
	if err != nil || kind == nil {
		return nil, err
	}
	return h.metadata(ctx, *kind, cluster, h.batchReads.ofAddOns())
}

// metadata reads the metadata of the objects of a kind in the namespace of a cluster, sorted by name. shared is nil if the pass reads cluster by
// cluster.
func (h Hub) metadata(ctx context.Context, kind schema.GroupVersionKind, cluster string, shared *batch[metav1.PartialObjectMetadata]) ([]metav1.PartialObjectMetadata, error) {
	list := func(options ...client.ListOption) ([]metav1.PartialObjectMetadata, bool, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := h.Client.List(ctx, list, options...)
		return list.Items, list.Continue != "", err
	}
	if shared != nil {
		found, all, err := shared.get(cluster, func(limit int64) ([]metav1.PartialObjectMetadata, bool, error) {
			return list(client.Limit(limit))
		}, func(o *metav1.PartialObjectMetadata) string { return o.Namespace })
		if err != nil || all {
			return found, err
		}
	}
	found, _, err := list(client.InNamespace(cluster))
	return found, err
}

// SigningRequests reads the CertificateSigningRequests with which a cluster's agent registers.
func (h Hub) SigningRequests(ctx context.Context, cluster string) ([]certificatesv1.CertificateSigningRequest, error) {
	list := func(options ...client.ListOption) ([]certificatesv1.CertificateSigningRequest, bool, error) {
		list := &certificatesv1.CertificateSigningRequestList{}
		err := h.Client.List(ctx, list, options...)
		return list.Items, list.Continue != "", err
	}
	if h.batchReads != nil {
		found, all, err := h.batchReads.requests.get(cluster, func(limit int64) ([]certificatesv1.CertificateSigningRequest, bool, error) {
			return list(client.HasLabels{clusterv1.ClusterNameLabelKey}, client.Limit(limit))
		}, func(r *certificatesv1.CertificateSigningRequest) string {
			return r.Labels[clusterv1.ClusterNameLabelKey]
		})
		if err != nil || all {
			return slices.Clone(found), err
		}
	}
	found, _, err := list(client.MatchingLabels{clusterv1.ClusterNameLabelKey: cluster})
	return found, err
}

// ClaimID is the claim that identifies a cluster, whatever its name is and at whichever hub it is.
const ClaimID = "id.k8s.io"

// IdentityOf returns the claim [ClaimID] of a cluster; empty if its agent has reported none.
func IdentityOf(mc *clusterv1.ManagedCluster) string {
	for _, claim := range mc.Status.ClusterClaims {
		if claim.Name == ClaimID {
			return claim.Value
		}
	}
	return ""
}

// IdentityIn is [IdentityOf] a ManagedCluster that is not decoded.
func IdentityIn(o *unstructured.Unstructured) string {
	claims, _, _ := unstructured.NestedSlice(o.Object, "status", "clusterClaims")
	for _, claim := range claims {
		if c, ok := claim.(map[string]any); ok && c["name"] == ClaimID {
			value, _ := c["value"].(string)
			return value
		}
	}
	return ""
}

// IdentitiesOf returns the identities of clusters, as far as they have reported one.
func (h Hub) IdentitiesOf(ctx context.Context, clusters []string) (map[string]string, error) {
	h = h.WithBatchReads(clusters)
	identities := map[string]string{}
	for _, name := range clusters {
		mc, err := h.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		if mc == nil {
			continue
		}
		if identity := IdentityOf(mc); identity != "" {
			identities[name] = identity
		}
	}
	return identities, nil
}
