package cluster

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// Command is `godwit cluster`.
func Command(a *frame.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Move managed clusters between hubs of Open Cluster Management",
		Long: "Move managed clusters from one hub of Open Cluster Management to another, and return those that the\n" +
			"target hub does not register.\n\n" +
			"The commands below use the global hub: the API server with a ManagedCluster for each hub and with the\n" +
			"migrations. `" + a.Program + " manager --controllers=clusterMigration` carries them out there, and\n" +
			"`" + a.Program + " agent` on each hub. Start with enroll for each hub, and then plan.",
	}
	frame.Parent(c)
	c.AddCommand(planCommand(a), moveCommand(a), runCommand(a), statusCommand(a), rollbackCommand(a), retryCommand(a), forgetCommand(a), enrollCommand(a))
	return c
}
