package target

import (
	"context"
	"fmt"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// RevokeRegistration removes exactly what GrantRegistration and IssueToken have added, unless
// another migration needs it, and what earlier releases have added to the ClusterManager. Before, it denies requests that the account has
// made for other identities.
func (h Hub) RevokeRegistration(ctx context.Context) error {
	if err := h.decideRequests(ctx, nil); err != nil {
		return err
	}
	m, err := h.clusterManager(ctx)
	if err != nil {
		return err
	}
	if m != nil {
		a, err := approvalOf(m)
		if err != nil {
			return err
		}
		if err := cluster.Patch(ctx, h.Client, m, func() error {
			a.remove(m, h.user(), h.UID)
			return a.save(m)
		}); err != nil {
			return fmt.Errorf("remove automatic approval: %w", err)
		}
	}
	if err := h.replaceBinding(ctx); err != nil { // another migration may still need it, and an update of the former one would be refused
		return err
	}
	for _, o := range h.granted() {
		if err := cluster.Unshare(ctx, h.Client, o, h.UID); err != nil {
			return fmt.Errorf("remove the permissions of bootstrap account %s: %w", h.Account, err)
		}
	}
	return h.revokeTokens(ctx)
}
