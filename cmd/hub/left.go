package hub

import (
	"maps"
	"slices"
	"strings"
)

// left has what stays on a hub if an action is not done, as a noun of a message.
var left = map[Action]string{
	RestoreAcceptance: "spec.hubAcceptsClient of its ManagedCluster, which may be false",
	RemovePauses:      "the pauses of its provisioning",
	RevertBootstrap:   "the annotations of the migration on its ManagedCluster, the KlusterletConfig migration-* and Secret bootstrap-* that they name, and delete option Orphan of its ManifestWork *-klusterlet-crds",
	DeleteMoved:       "all objects of the cluster",
	DeleteCreated:     "the objects that the migration has created for the cluster",
	FinishMoved:       "the annotations of the migration on the objects of the cluster, and its Secret and KlusterletConfig godwit-return-*",

	RevokeRegistration: "the permissions of the bootstrap account",
	RevokeBootstrap:    "the ManagedServiceAccount with the bootstrap token",
}

// Leaves returns what the migration leaves of a cluster that has not ended.
func (s State) Leaves(c Cluster) string {
	way, from := s.way(c), c.Turn
	if c.State == Selected {
		way, from = s.wayBack(), 0
	}
	var parts []string
	for _, p := range []Party{Source, Target} {
		if what := leftOf(way[from:], p); what != "" {
			parts = append(parts, "on "+p.String()+" "+what)
		}
	}
	return "left " + strings.Join(parts, "; ")
}

// leftOf returns what a party leaves if it does not take turns.
func leftOf(turns []turn, p Party) string {
	var parts []string
	for _, t := range turns {
		for _, task := range t {
			for _, a := range task.actions {
				if what := left[a]; what != "" && task.party == p && !slices.Contains(parts, what) {
					parts = append(parts, what)
				}
			}
		}
	}
	return strings.Join(parts, ", and ")
}

// LeftBehind returns what a migration has left that was deleted before it had ended, or that has forgotten clusters. It is
// empty if nothing is left.
func (s State) LeftBehind() string {
	var parts []string
	if s.Abandoned {
		for _, p := range []Party{Target, Manager} {
			if what := leftOf(closing[max(s.Turn-1, 0):], p); what != "" {
				parts = append(parts, "left on "+hubOf(p)+" "+what)
			}
		}
	}
	walking := s
	walking.Turn, walking.Abandoned = 0, false
	names := map[string][]string{} // by what is left
	for _, c := range s.Clusters {
		switch {
		case c.State == Forgotten:
			names[c.Note] = append(names[c.Note], c.Name)
		case s.Abandoned && !c.HasEnded():
			what := walking.Leaves(c)
			names[what] = append(names[what], c.Name)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(names)) {
		parts = append(parts, what+", for "+firstNames(names[what]))
	}
	return strings.Join(parts, "; ")
}

// hubOf names the hub of a party in a message.
func hubOf(p Party) string {
	if p == Manager {
		return "the global hub"
	}
	return p.String()
}
