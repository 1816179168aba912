package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format"
)

// overlapping returns namespace/name of another migration that has one of the clusters of this one, or empty.
func (r *Reconciler) overlapping(ctx context.Context, m migration) (string, error) {
	var names []string
	for _, c := range m.state.Clusters {
		names = append(names, c.Name)
	}
	claims, err := r.otherClaims(ctx, m)
	if err != nil {
		return "", err
	}
	other, _, _ := hub.Overlap(names, claims)
	return other, nil
}

// otherClaims returns the claims of all other migrations from or to the same hubs, the oldest first. On other hubs, a
// cluster of the same name is another cluster.
func (r *Reconciler) otherClaims(ctx context.Context, m migration) ([]hub.Claim, error) {
	list := &api.ManagedClusterMigrationList{}
	if err := r.Reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list the migrations: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.ManagedClusterMigration) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	var claims []hub.Claim
	for i := range list.Items {
		other := migration{object: &list.Items[i]}
		if other.object.UID == m.object.UID || other.object.Status.CompletionTime != nil || !m.sharesHub(other) {
			continue
		}
		name := client.ObjectKeyFromObject(other.object).String()
		switch err := r.restore(ctx, &other); {
		case errors.Is(err, errStateLost), errors.As(err, new(*format.NewerError)):
			// It does nothing, and it stalls no other one. None of the clusters in its list counts as free. Of one with a placement, the hubs know the
			// clusters: their objects name the migration, and InstallBootstrap of another one is refused.
			claims = append(claims, hub.Claim{Migration: name, Clusters: named(other.object)})
			continue
		case err != nil:
			return nil, fmt.Errorf("read which clusters migration %s has: %w", name, err)
		}
		if claim, ok := hub.ClaimOf(name, other.state); ok {
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// named returns the clusters in the list of a migration.
func named(m *api.ManagedClusterMigration) []string {
	names := make([]string, len(m.Spec.IncludedManagedClusters))
	for i, name := range m.Spec.IncludedManagedClusters {
		names[i] = string(name)
	}
	return names
}

func (m migration) sharesHub(other migration) bool {
	return m.from() == other.from() || m.from() == other.to() || m.to() == other.from() || m.to() == other.to()
}
