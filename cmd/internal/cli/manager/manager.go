// Package manager has the command that runs the controllers: `godwit manager`.
package manager

import (
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/operator"
)

// Command is `godwit manager`.
func Command(a *cli.App) *cobra.Command {
	var o operator.Options
	var verbose int
	c := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers, in a cluster",
		Long: "Run the controllers until told to stop, as a Deployment does, or by hand to try them.\n" +
			"The manager migrates the CRDs in scope when their storage version changes. A\n" +
			"CRDMigration names one CRD and shows how far its migration is.\n\n" +
			"--config names a file of kind " + operator.ConfigurationKind + " (" + operator.ConfigurationVersion + "); a key that\n" +
			"is not known fails the start. Without --controllers, " + operator.StorageVersionMigrator + " runs,\n" +
			"unless " + operator.EnableVariable + " is false, and\n" +
			operator.RevisionUpgrader + " does if " + operator.EnableRevisionUpgrader + " is true.",
		Example: "  # On the cluster of the kubeconfig, to try it\n  " + a.Program + " manager --leader-elect=false --metrics-bind-address=0\n\n" +
			"  # What would it migrate? This changes nothing\n  " + a.Program + " crd plan -l godwit.dev/auto-migrate-storage-version=true",
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Cluster.ToRESTConfig()
			if err != nil {
				return cli.BadKubeconfig(err)
			}
			cfg.UserAgent = "godwit-manager/" + cli.Build().Version
			logger := a.Logger(verbose)
			log.SetLogger(logger)
			return operator.Run(logr.NewContext(c.Context(), logger), cfg, o)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.Controllers, "controllers", nil, "which controllers run; there are: "+strings.Join(operator.Controllers, ", ")+" (default: "+operator.StorageVersionMigrator+")")
	flags.StringVar(&o.ConfigFile, "config", "", "a file of kind "+operator.ConfigurationKind+" (default: no file, all defaults)")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "where metrics are served, to whom the API server lets in; 0 for nowhere")
	flags.BoolVar(&o.InsecureMetrics, "metrics-insecure", false, "serve metrics over plain HTTP, without authorization")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	flags.StringVar(&o.PprofAddress, "pprof-bind-address", "", "where profiles are served (default: nowhere)")
	flags.BoolVar(&o.LeaderElection, "leader-elect", true, "make sure that one manager works and the others stand by")
	flags.StringVar(&o.Namespace, "leader-elect-namespace", "", "where the lease of the leader is (default: the pod's own namespace)")
	flags.CountVarP(&verbose, "verbose", "v", "log more; twice for still more")
	return c
}
