package target

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/csr"
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
	case !isJoined(mc):
		requests, err := h.SigningRequests(ctx, mc.Name)
		if err != nil {
			return "", err
		}
		return h.notJoined(mc, requests)
	case !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable):
		return "the cluster is Joined, and not Available: read the log of its registration agent", nil
	case !fresh:
		return "the cluster has not renewed its lease on the target hub twice", nil
	}
	return "", nil
}

// notJoined returns why a cluster is not Joined, according to the latest CertificateSigningRequest with which its agent registers by the bootstrap
// account. Others may have the label of the cluster too: any client that may create a request sets any label.
func (h Hub) notJoined(mc *clusterv1.ManagedCluster, requests []certificatesv1.CertificateSigningRequest) (waits string, err error) {
	if !mc.Spec.HubAcceptsClient {
		return "", cluster.Fail(cluster.ReasonNotPrepared, "the target hub does not accept %s any more: a user has set spec.hubAcceptsClient of its ManagedCluster to false", mc.Name)
	}
	var latest, other *certificatesv1.CertificateSigningRequest
	for i := range requests {
		r := &requests[i]
		name, err := csr.ClusterOf(r)
		switch {
		case r.CreationTimestamp.Before(&mc.CreationTimestamp):
		case err != nil || name != mc.Name || !csr.IsOf(r, h.user()):
			other = later(other, r)
		default:
			latest = later(latest, r)
		}
	}
	if latest == nil {
		return h.noRequest(other), nil
	}
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
	return fmt.Sprintf("the next pass decides about CertificateSigningRequest %s", latest.Name), nil
}

// later returns the later of two requests, of which either may be nil.
func later(a, b *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	if a != nil && !a.CreationTimestamp.Before(&b.CreationTimestamp) {
		return a
	}
	return b
}

// noRequest says that the agent has not registered by the bootstrap account. It recommends nothing about the request of another user.
func (h Hub) noRequest(other *certificatesv1.CertificateSigningRequest) string {
	text := "its agent has made no CertificateSigningRequest as " + h.user() + ": check that the cluster reaches the target hub"
	if other != nil {
		text += fmt.Sprintf(". CertificateSigningRequest %s, of user %q, is not one with which it registers, and the migration does not need it", other.Name, other.Spec.Username)
	}
	return text
}
