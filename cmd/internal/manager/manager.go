// Package manager has the command that runs the controllers: `godwit manager`.
package manager

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/frame/process"
	"github.com/godwit-dev/godwit/cmd/internal/operator"
)

// Command is `godwit manager`.
func Command(a *frame.App) *cobra.Command {
	var o operator.Options
	var brokers process.BrokerFlags
	var server process.Flags
	c := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers, in a cluster",
		Long: "Run the controllers until told to stop, as a Deployment does, or by hand to try them.\n" +
			"The manager migrates the CRDs in scope when their storage version changes. A\n" +
			"CRDMigration names one CRD and shows how far its migration is.\n\n" +
			"--config names a file of kind " + operator.ConfigurationKind + " (" + operator.ConfigurationVersion + "); a key that\n" +
			"is not known fails the start. Without --controllers, " + operator.StorageVersionMigrator + " runs,\n" +
			"unless " + operator.EnableVariable + " is false, and\n" +
			operator.RevisionUpgrader + " does if " + operator.EnableRevisionUpgrader + " is true.\n\n" +
			operator.ClusterMigration + " runs if " + operator.EnableClusterMigration + " is true. It executes ManagedClusterMigrations,\n" +
			"by which managed clusters move between hubs, and commands the agents of the hubs over Kafka.\n" +
			"Give it brokers by --kafka-brokers, or in the file: " + operator.ClusterMigration + ".kafka.",
		Example: "  # On the cluster of the kubeconfig, to try it\n  " + a.Program + " manager --leader-elect=false --metrics-bind-address=0\n\n" +
			"  # What would it migrate? This changes nothing\n  " + a.Program + " crd plan -l godwit.dev/auto-migrate-storage-version=true\n\n" +
			"  # Move managed clusters between hubs, and nothing else\n  " + a.Program + " manager --controllers=" + operator.ClusterMigration + " --kafka-brokers=kafka.example.com:9093",
		Args: frame.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if brokers.Given(c) {
				given, err := brokers.Options("godwit-manager")
				if err != nil {
					return err
				}
				o.Kafka = &given
			}
			ctx, cfg, err := server.Start(a, c, "godwit-manager")
			if err != nil {
				return err
			}
			o.Process = server.Options
			return operator.Run(ctx, cfg, o)
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.Controllers, "controllers", nil, "which controllers run; there are: "+strings.Join(operator.Controllers, ", ")+" (default: "+operator.StorageVersionMigrator+")")
	flags.StringVar(&o.ConfigFile, "config", "", "a file of kind "+operator.ConfigurationKind+" (default: no file, all defaults)")
	flags.StringSliceVar(&o.MigrationNamespaces, "migration-namespaces", nil, "begin ManagedClusterMigrations of these namespaces only (default: of all)")
	brokers.AddTo(c)
	server.AddTo(c)
	flags.StringVar(&server.Namespace, "leader-elect-namespace", "", "namespace of the manager, where the lease of the leader is (default: the pod's own namespace)")
	server.AddVerboseTo(c)
	return c
}
