package clusterreport

import (
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Rejoined is the document of a cluster that came to a hub without its former one. No object has its state, so that it has the name of the
// cluster and no namespace. The step is empty when nothing is left to do.
func Rejoined(cluster, from, to, step string, why render.Cause) Migration {
	d := NoMigration("", cluster)
	d.From, d.To, d.Counts = from, to, Counts{Total: 1}
	one := Cluster{Name: cluster, State: hub.Selected, Step: step, Warnings: []render.Cause{}}
	if step == "" {
		d.Phase, d.Settled, d.Counts.Moved, d.Cause = api.PhaseCompleted, true, 1, why
		one.State, one.Hub = hub.Moved, to
	} else {
		d.Phase, one.Cause = api.PhaseRegistering, why
	}
	d.Clusters = append(d.Clusters, one)
	return d
}

// Lasting returns the document of a migration and of its clusters with their time.
func (m Migration) Lasting(seconds float64) Migration {
	m.Seconds = seconds
	for i := range m.Clusters {
		m.Clusters[i].Seconds = seconds
	}
	return m
}
