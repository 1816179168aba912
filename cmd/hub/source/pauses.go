package source

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// RemovePauses removes the pauses that the migration has set. A pause of a user stays.
func (h Hub) RemovePauses(ctx context.Context, clusters []string) (cluster.Result, error) {
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		objects, err := h.Objects(ctx, name, cluster.Pausable(h.MigrationRules()))
		if err != nil {
			return "", err
		}
		for _, o := range objects {
			if err := cluster.Unpause(ctx, h.Client, o, h.UID); err != nil {
				return "", err
			}
		}
		return "", nil
	})
}
