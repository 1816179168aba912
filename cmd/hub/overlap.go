package hub

import (
	"slices"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Claim has the clusters of a migration.
type Claim struct {
	// Migration is namespace/name.
	Migration string
	Clusters  []string
}

// ClaimOf returns the claim of a migration, or false if it has none: before its claim in phase Validating, and after
// its end. A migration keeps the clusters that have not ended, also after it has failed.
func ClaimOf(migration string, s State) (Claim, bool) {
	switch {
	case s.Phase == api.PhasePending, s.Settled(), s.Phase == api.PhaseValidating && s.Turn <= claimTurn:
		return Claim{}, false
	}
	return Claim{Migration: migration, Clusters: s.clustersIn(Selected, Registered, Returning, Returned)}, true
}

// claimTurn is the turn of phase Validating in which the manager claims the clusters. It
// comes after the source hub resolved the placement, and before the target is asked.
var claimTurn = slices.IndexFunc(together[api.PhaseValidating], func(t turn) bool {
	return slices.Contains(t[0].actions, ClaimClusters)
})

// Overlap returns the first claim that has one of the clusters, and that cluster. Migrations of disjoint clusters run
// at the same time. Callers must serialize claims.
func Overlap(clusters []string, claims []Claim) (migration, cluster string, overlaps bool) {
	mine := make(map[string]bool, len(clusters))
	for _, name := range clusters {
		mine[name] = true
	}
	for _, claim := range claims {
		for _, name := range claim.Clusters {
			if mine[name] {
				return claim.Migration, name, true
			}
		}
	}
	return "", "", false
}
