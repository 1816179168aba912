package target

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// AwaitRegistration is done for a cluster when it is Joined and Available, and its lease was renewed twice since the
// first pass. Each pass decides about the CertificateSigningRequests of the bootstrap account.
func (h Hub) AwaitRegistration(ctx context.Context, clusters []string, leases *cluster.Leases) (cluster.Result, error) {
	h.Hub = h.WithBatchReads(clusters)
	if err := h.decideRequests(ctx, clusters); err != nil {
		return cluster.Result{}, err
	}
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		mc, err := h.ours(ctx, name)
		if err != nil {
			return "", err
		}
		// Again: the import controller may not have begun with the cluster in AcceptClusters.
		if err := h.keepToken(ctx, mc); err != nil {
			return "", err
		}
		return h.awaitRegistration(ctx, mc, leases)
	})
}

func (h Hub) awaitRegistration(ctx context.Context, mc *clusterv1.ManagedCluster, leases *cluster.Leases) (waits string, err error) {
	fresh, err := leases.Fresh(ctx, h.Hub, mc.Name)
	if err != nil {
		return "", err
	}
	switch {
	case !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionJoined):
		requests, err := h.SigningRequests(ctx, mc.Name)
		if err != nil {
			return "", err
		}
		return notJoined(mc, requests)
	case !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable):
		return "the cluster is Joined, and not Available: read the log of its registration agent", nil
	case !fresh:
		return "the cluster has not renewed its lease on the target hub twice", nil
	}
	return "", nil
}

// notJoined returns why a cluster is not Joined, according to its latest CertificateSigningRequest.
func notJoined(mc *clusterv1.ManagedCluster, requests []certificatesv1.CertificateSigningRequest) (waits string, err error) {
	if !mc.Spec.HubAcceptsClient {
		return "", cluster.Fail(cluster.ReasonNotPrepared, "the target hub does not accept %s any more: a user has set spec.hubAcceptsClient of its ManagedCluster to false", mc.Name)
	}
	requests = slices.DeleteFunc(requests, func(r certificatesv1.CertificateSigningRequest) bool {
		return r.CreationTimestamp.Before(&mc.CreationTimestamp)
	})
	if len(requests) == 0 {
		return "its agent has made no CertificateSigningRequest: check that the cluster reaches the target hub", nil
	}
	latest := slices.MaxFunc(requests, func(a, b certificatesv1.CertificateSigningRequest) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for _, c := range latest.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return "", cluster.Fail(cluster.ReasonDenied, "CertificateSigningRequest %s of %s is denied: %s", latest.Name, mc.Name, c.Message)
		case certificatesv1.CertificateFailed:
			return "", cluster.Fail(cluster.ReasonDenied, "CertificateSigningRequest %s of %s has failed: %s", latest.Name, mc.Name, c.Message)
		case certificatesv1.CertificateApproved:
			return fmt.Sprintf("CertificateSigningRequest %s is approved, and its agent has not joined", latest.Name), nil
		}
	}
	return fmt.Sprintf("CertificateSigningRequest %s is not approved: kubectl certificate approve %s", latest.Name, latest.Name), nil
}
