package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/csr"
)

// requestPage is the number of CertificateSigningRequests in a page; 500 is kubectl's --chunk-size default.
const requestPage = 500

// decideRequests approves the CertificateSigningRequests with which the bootstrap account registers clusters that the migration awaits,
// and denies its requests for other identities. It leaves requests of other users alone. Each pass reads all requests, so that an agent
// which was killed continues. [Hub.Denied] gets those that the migration has denied in this or an earlier pass.
func (h Hub) decideRequests(ctx context.Context, awaits []string) error {
	requests, err := h.accountRequests(ctx)
	if err != nil || len(requests) == 0 {
		return err
	}
	facts := csr.Facts{User: h.user(), Migration: h.UID, Awaits: awaits, Clusters: map[string]csr.Cluster{}}
	if facts.Sharing, err = h.sharing(ctx); err != nil {
		return err
	}
	var denied []string
	var errs []error
	for i := range requests {
		r := &requests[i]
		if csr.IsPending(r) {
			errs = append(errs, h.decideRequest(ctx, r, facts))
		}
		if why, ok := csr.DeniedBy(r, h.UID); ok {
			denied = append(denied, r.Name+": "+why)
		}
	}
	h.reportCertificates(requests)
	if h.Denied != nil && len(denied) > 0 {
		h.Denied(denied)
	}
	return errors.Join(errs...)
}

// accountRequests reads the requests of the bootstrap account, page by page. Requests for other signers are approved by no agent of Godwit, and by
// none of Open Cluster Management.
func (h Hub) accountRequests(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
	var all []certificatesv1.CertificateSigningRequest
	next := ""
	for {
		page := &certificatesv1.CertificateSigningRequestList{}
		if err := h.Client.List(ctx, page, client.MatchingFields{"spec.signerName": csr.Signer}, client.Limit(requestPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list the CertificateSigningRequests of bootstrap account %s: %w", h.Account, err)
		}
		for i := range page.Items {
			if csr.IsOf(&page.Items[i], h.user()) {
				all = append(all, page.Items[i])
			}
		}
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// sharing returns the UIDs of the migrations that use the bootstrap account.
func (h Hub) sharing(ctx context.Context) ([]string, error) {
	binding := h.binding()
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return cluster.Owners(binding), nil
}

// decideRequest decides about a pending request, and updates it in memory too.
func (h Hub) decideRequest(ctx context.Context, r *certificatesv1.CertificateSigningRequest, facts csr.Facts) error {
	if name, err := csr.ClusterOf(r); err == nil {
		mc, err := h.Find(ctx, name)
		if err != nil {
			return err
		}
		if mc != nil {
			if facts.Clusters[name], err = h.clusterFacts(ctx, mc); err != nil {
				return err
			}
		}
	}
	d := csr.Decide(r, facts)
	if d.Action == csr.Leave {
		return nil
	}
	decided := r.DeepCopy()
	decided.Status.Conditions = append(decided.Status.Conditions, csr.Condition(d, h.UID))
	switch err := h.Client.SubResource("approval").Update(ctx, decided); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the next pass reads it again
	case err != nil:
		return fmt.Errorf("%s CertificateSigningRequest %s: %w", d.Action, r.Name, err)
	}
	*r = *decided
	return nil
}

// clusterFacts returns what a decision depends on.
func (h Hub) clusterFacts(ctx context.Context, mc *clusterv1.ManagedCluster) (csr.Cluster, error) {
	if h.Returns {
		migration, _ := cluster.MigrationOf(mc)
		return csr.Cluster{Migration: migration, Accepts: mc.Spec.HubAcceptsClient}, nil
	}
	f := csr.Cluster{
		Migration: mc.Labels[cluster.LabelMigration], Accepts: mc.Spec.HubAcceptsClient,
		Joined: isJoined(mc),
	}
	created, err := h.created(ctx, mc)
	if f.Migration == h.UID && !created {
		f.Migration = ""
	}
	return f, err
}

// DecideReturns decides about the requests with which clusters register at this hub again.
func (h Hub) DecideReturns(ctx context.Context, awaits []string) error {
	return h.decideRequests(ctx, awaits)
}

// reportCertificate reports the certificate of a cluster that has got it by the migration. Kubernetes can't revoke it.
func (h Hub) reportCertificate(ctx context.Context, name string) error {
	if h.Issued == nil {
		return nil
	}
	requests, err := h.Live().SigningRequests(ctx, name)
	if err != nil {
		return err
	}
	h.reportCertificates(slices.DeleteFunc(requests, func(r certificatesv1.CertificateSigningRequest) bool { return !csr.IsOf(&r, h.user()) }))
	return nil
}

// reportCertificates reports the last certificate of each cluster that one of the requests is for.
func (h Hub) reportCertificates(requests []certificatesv1.CertificateSigningRequest) {
	if h.Issued == nil {
		return
	}
	last := map[string]time.Time{}
	for i := range requests {
		name, err := csr.ClusterOf(&requests[i])
		if expiry, ok := csr.Expiry(&requests[i]); ok && err == nil && expiry.After(last[name]) {
			last[name] = expiry
		}
	}
	for name, expiry := range last {
		h.Issued(name, expiry.UTC())
	}
}
