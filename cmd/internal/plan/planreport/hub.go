package planreport

import (
	"cmp"
	"fmt"
	"strings"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Migration is a migration of managed clusters, without its clusters.
type Migration struct {
	clusterreport.Migration
	// Stalled means that it does not continue without the user.
	Stalled bool
	// Status is the command that shows it.
	Status string
	// Retry is the command that moves the rest of its clusters. It is empty if it needs more than the cluster of the row.
	Retry string
}

// HubRow is the row of all migrations of managed clusters.
func HubRow(migrations []Migration) Row {
	objects := make([]Object, len(migrations))
	for i, m := range migrations {
		objects[i] = migrationObject(m, retried(m, migrations))
	}
	r := rowOf(Hubs, objects)
	if len(r.Objects) > 0 {
		r.Next = r.Objects[0].Next
	}
	return r
}

// retried reports whether another migration moves the clusters that this one has not moved.
func retried(m Migration, all []Migration) bool {
	for _, other := range all {
		if other.Namespace == m.Namespace && strings.HasPrefix(other.Name, m.Name+"-retry-") {
			return m.Settled
		}
	}
	return false
}

func migrationObject(m Migration, retried bool) Object {
	o := Object{
		Name: m.Namespace + "/" + m.Name, State: migrationState(m, retried),
		Detail: fmt.Sprintf("from %s to %s; %s", m.From, m.To, clusterreport.Progress(m.Migration)),
	}
	switch {
	case o.State == InProgress && m.Status != "":
		o.Next = m.Status + " --watch"
	case o.State == Blocked && m.Settled:
		o.Next = cmp.Or(m.Retry, m.Status)
	case o.State == Blocked:
		o.Next = m.Status
	}
	if o.State == Blocked {
		o.Blockers = render.Of("", render.Problem{Reason: m.Reason, Message: m.Message, Remedy: "see which clusters were not moved, and why: " + m.Status})
	}
	return o
}

// migrationState is Clean for a migration that has moved every cluster, and for one that was retried.
func migrationState(m Migration, retried bool) State {
	moved := m.Phase == api.PhaseCompleted && m.Settled && m.Counts.Moved == m.Counts.Total
	switch {
	case moved, retried:
		return Clean
	case m.Phase == "", m.Settled, m.Stalled, m.Phase == api.PhaseFailed: // no phase: no manager has observed it
		return Blocked
	}
	return InProgress
}
