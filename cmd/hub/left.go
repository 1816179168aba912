package hub

import (
	"maps"
	"slices"
	"strings"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// left has what stays on a hub if an action is not done, as a noun of a message: on hubs with the import controller, and without it.
var left = map[Action]string{
	RestoreAcceptance: "spec.hubAcceptsClient of its ManagedCluster, which may be false",
	RemovePauses:      "the pauses of its provisioning",
	RevertBootstrap: "the annotations of the migration on its ManagedCluster, KlusterletConfig migration-* and Secret bootstrap-*, and delete option Orphan of its ManifestWork *-klusterlet-crds" +
		", or without the import controller ManifestWork godwit-klusterlet, and ServiceAccount and bindings godwit-return-*",
	DeleteMoved:   "all objects of the cluster",
	DeleteCreated: "the objects that the migration has created for the cluster",
	FinishMoved: "the annotations of the migration on the objects of the cluster, and its Secret and KlusterletConfig godwit-return-*" +
		", or without the import controller ManifestWork godwit-klusterlet",

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

// remainder is something that a migration has left, of clusters or of the migration as a whole.
type remainder struct {
	what     string
	clusters []string
}

// remainders returns what a migration has left that was ended before it was done, or without clusters.
func (s State) remainders() []remainder {
	var all []remainder
	from := len(closing)
	switch {
	case s.Abandoned:
		from = max(s.Turn-1, 0)
	case s.TargetLost && s.Settled() && s.Turn > 0:
		from = 0
	}
	for _, p := range []Party{Target, Manager} {
		if what := leftOf(closing[from:], p); what != "" && (p == Target || !s.TargetLost) {
			all = append(all, remainder{what: "left on " + hubOf(p) + " " + what})
		}
	}
	walking := s
	walking.Turn, walking.Abandoned = 0, false
	names := map[string][]string{} // by what is left
	for _, c := range s.Clusters {
		switch {
		case c.State == Forgotten, c.State == Restored && c.Note != "":
			names[c.Note] = append(names[c.Note], c.Name)
		case s.Abandoned && !c.HasEnded():
			what := walking.Leaves(c)
			names[what] = append(names[what], c.Name)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(names)) {
		all = append(all, remainder{what, names[what]})
	}
	return all
}

// Abandon returns the state of a migration that can't continue, and that leaves what it has changed.
func (s State) Abandon() State {
	s = s.clone()
	s.Abandoned = true
	switch {
	case StageNumber(s.Stage) <= StageNumber(api.PhaseValidating): // it has changed neither hub
		s.Turn, s.Clusters = len(closing)+1, nil
	case !ByCluster(s.Stage):
		s.Turn = 0
	}
	return s
}

// LeftBehind returns what a migration has left that was ended before it was done, or that has forgotten clusters. It names the first
// clusters. It is empty if nothing is left.
func (s State) LeftBehind() string {
	var parts []string
	for _, r := range s.remainders() {
		if len(r.clusters) > 0 {
			r.what += ", for " + firstNames(r.clusters)
		}
		parts = append(parts, r.what)
	}
	return strings.Join(parts, "; ")
}

const (
	// maxInNote bounds the clusters in a note of [State.NotesOfLeft].
	maxInNote = 20
	// maxNote bounds such a note, in bytes: an event has 1 KiB for it and for what introduces it.
	maxNote = 900
)

// NotesOfLeft returns the same as [State.LeftBehind] in several notes, which name all clusters.
func (s State) NotesOfLeft() []string {
	var notes []string
	for _, r := range s.remainders() {
		if len(r.clusters) == 0 {
			notes = append(notes, r.what)
		}
		notes = append(notes, notesOf(r.what+",", r.clusters)...)
	}
	return notes
}

// notesOf returns notes that begin with the same text and together name all clusters.
func notesOf(what string, clusters []string) []string {
	var notes []string
	for rest := clusters; len(rest) > 0; {
		note, n := what+" for "+rest[0], 1
		for n < min(len(rest), maxInNote) && len(note)+len(", ")+len(rest[n]) <= maxNote {
			note += ", " + rest[n]
			n++
		}
		notes, rest = append(notes, note), rest[n:]
	}
	return notes
}

// hubOf names the hub of a party in a message.
func hubOf(p Party) string {
	if p == Manager {
		return "the global hub"
	}
	return p.String()
}
