// Package agent has the command that runs the agent of a hub: `godwit agent`.
package agent

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/frame/process"
	"github.com/godwit-dev/godwit/cmd/internal/hubagent"
)

// Command is `godwit agent`.
func Command(a *frame.App) *cobra.Command {
	var (
		o       hubagent.Options
		brokers process.BrokerFlags
		server  process.Flags
	)
	c := &cobra.Command{
		Use:   "agent --hub=NAME --manager-key=KEY --kafka-brokers=HOST:PORT...",
		Short: "Run the agent of a hub, for moves of managed clusters",
		Long: "Run the agent of a hub until told to stop, as a Deployment on the hub does. The agent receives\n" +
			"commands of the manager over Kafka, and moves managed clusters from this hub or to it.\n\n" +
			"The manager and the agent know each other by keys. Print the key of the manager on the global\n" +
			"hub, and enroll the agent there by `" + a.Program + " cluster enroll`, with the key that the agent logs:\n" +
			"  kubectl -n godwit get secret godwit-hub-identity -o jsonpath='{.data.public}' | base64 -d\n\n" +
			"The agent refuses messages that are not signed by the manager, and objects that no rule\n" +
			"names. It needs a namespace of its own, also on a hub that has the manager.\n\n" +
			"--rules names a file with rules of your own, for the agents of both hubs. Each\n" +
			"rule is a kind, with the names, the label or the annotation that its objects have:\n" +
			"  - {group: example.com, kind: SiteNote, names: [\"{cluster}-note\"]}\n\n" +
			"Without brokers, the agent waits and tries again; it continues a migration after a restart.",
		Example: "  # As a Deployment on hub1 runs it\n" +
			"  " + a.Program + " agent --hub=hub1 --manager-key=\"$MANAGER_KEY\" --kafka-brokers=kafka.example.com:9093 \\\n" +
			"    --kafka-sasl=SCRAM-SHA-512 --kafka-user=hub1 --kafka-password-file=/etc/kafka/password\n\n" +
			"  # Give its ServiceAccount the permissions\n" +
			"  " + a.Program + " rbac --for=hub-agent --serviceaccount=godwit-agent:godwit | kubectl apply -f -",
		Args: frame.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.Hub == "":
				return frame.Usagef("specify --hub=NAME: the name of its ManagedCluster on the global hub")
			case o.ManagerKey == "":
				return frame.Usagef("specify --manager-key=KEY: the public key of the manager")
			}
			var err error
			if o.Kafka, err = brokers.Options("godwit-agent-" + o.Hub); err != nil {
				return err
			}
			ctx, cfg, err := server.Start(a, c, "godwit-agent")
			if err != nil {
				return err
			}
			o.Process = server.Options
			if a.Cluster.Namespace != nil {
				o.Process.Namespace = *a.Cluster.Namespace
			}
			return hubagent.Run(ctx, cfg, o)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.Hub, "hub", "", "name of this hub: that of its ManagedCluster on the global hub")
	flags.StringVar(&o.ManagerKey, "manager-key", "", "public key of the manager, in base64")
	brokers.AddTo(c)
	flags.StringVar(&o.BootstrapNamespace, "bootstrap-namespace", "multicluster-engine", "where the import controller reads bootstrap secrets")
	flags.StringVar(&o.RulesFile, "rules", "", "file with rules of objects that move, in addition to the default rules")
	flags.Float32Var(&o.RequestsPerSecond, "requests-per-second", 200, "maximum of requests to the API server per second")
	server.AddTo(c)
	server.AddVerboseTo(c)
	return c
}
