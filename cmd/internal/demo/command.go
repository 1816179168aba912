package demo

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Command is `godwit demo`. program is what the user types for godwit.
func Command(program string, streams genericiooptions.IOStreams) *cobra.Command {
	o := Options{Program: program, Out: streams.Out, ErrOut: streams.ErrOut}
	c := &cobra.Command{
		Use:   "demo [--keep]",
		Short: "Show a migration on a local control plane; connects to no other cluster",
		Long: "Start etcd and kube-apiserver on this machine, install the CRDs of the Gateway API and create\n" +
			"2,000 objects. Then upgrade the CRDs, plan, run with one object that the API server refuses,\n" +
			"fix that object, resume, verify in etcd, and remove the old version from the CRDs.\n\n" +
			"The demo reads no kubeconfig. At its end, it stops the control plane and removes all files.\n\n" +
			"The demo needs the binaries that `make controlplane` compiles, and the go command, which\n" +
			"downloads the CRDs. `" + program + " demo revisions` shows the upgrade of ControllerRevisions,\n" +
			"`" + program + " demo names` an import and a renaming of external names, and `" + program + " demo clusters` moves\n" +
			"of managed clusters between hubs.",
		Example: "  # Run the demo\n" +
			"  " + program + " demo\n\n" +
			"  # Keep the cluster afterwards, to look at it with kubectl\n" +
			"  " + program + " demo --keep",
		RunE: func(c *cobra.Command, args []string) error {
			if err := refuse(c, args); err != nil {
				return err
			}
			return Run(c.Context(), o)
		},
	}
	o.addTo(c)
	c.AddCommand(revisionsCommand(program, streams), namesCommand(program, streams), clustersCommand(program, streams))
	return c
}

func (o *Options) addTo(c *cobra.Command) {
	c.Flags().BoolVar(&o.Keep, "keep", false, "keep the cluster running until you press Ctrl-C, and write a kubeconfig for it")
	c.Flags().StringVar(&o.Kubeconfig, "write-kubeconfig", DefaultKubeconfig, "file that --keep writes the kubeconfig to, and removes at the end")
}

func revisionsCommand(program string, streams genericiooptions.IOStreams) *cobra.Command {
	o := Options{Program: program, Out: streams.Out, ErrOut: streams.ErrOut}
	c := &cobra.Command{
		Use:   "revisions [--keep]",
		Short: "Show an upgrade of ControllerRevisions on a local control plane; connects to no other cluster",
		Long: "Start etcd and kube-apiserver on this machine, install the CRDs of KubeVirt, and create virtual\n" +
			"machines and a snapshot as KubeVirt v0.56 and later releases left them. Then plan, run, show\n" +
			"which revisions the run deferred or blocked and why, wait for the end of the retention, and\n" +
			"remove the old versions from the CRDs.\n\n" +
			"The demo reads no kubeconfig. At its end, it stops the control plane and removes all files.\n\n" +
			"The demo needs the binaries that `make controlplane` compiles, and the go command, which\n" +
			"generates the CRDs from the API types of KubeVirt. This takes half a minute the first time.",
		Example: "  # Run the demo\n" +
			"  " + program + " demo revisions\n\n" +
			"  # Keep the cluster afterwards, to look at it with kubectl\n" +
			"  " + program + " demo revisions --keep",
		RunE: func(c *cobra.Command, args []string) error {
			if err := refuse(c, args); err != nil {
				return err
			}
			return RunRevisions(c.Context(), o)
		},
	}
	o.addTo(c)
	return c
}

func namesCommand(program string, streams genericiooptions.IOStreams) *cobra.Command {
	o := Options{Program: program, Out: streams.Out, ErrOut: streams.ErrOut}
	c := &cobra.Command{
		Use:   "names [--keep]",
		Short: "Show an import and a renaming of external names on a local control plane; connects to no other cluster",
		Long: "Start etcd, kube-apiserver, a job service and a Crossplane provider for it on this machine. Import\n" +
			"databases that exist in the service, show one that another client changes, and give the provider\n" +
			"full management. Then rename the external names that an earlier release of the provider wrote,\n" +
			"with a proof for each, and roll them back.\n\n" +
			"The demo reads no kubeconfig. At its end, it stops all processes and removes all files but the\n" +
			"compiled provider.\n\n" +
			"The demo needs the binaries that `make controlplane` compiles, and the go command, which compiles\n" +
			"the provider. This takes a minute the first time.",
		Example: "  # Run the demo\n" +
			"  " + program + " demo names\n\n" +
			"  # Keep the cluster, the service and the provider afterwards, to look at them with kubectl\n" +
			"  " + program + " demo names --keep",
		RunE: func(c *cobra.Command, args []string) error {
			if err := refuse(c, args); err != nil {
				return err
			}
			return RunNames(c.Context(), o)
		},
	}
	o.addTo(c)
	return c
}

func clustersCommand(program string, streams genericiooptions.IOStreams) *cobra.Command {
	o := Options{Program: program, Out: streams.Out, ErrOut: streams.ErrOut}
	c := &cobra.Command{
		Use:   "clusters [--keep]",
		Short: "Show moves of managed clusters between two hubs on local control planes; connects to no other cluster",
		Long: "Start two hubs on this machine, each with etcd and kube-apiserver, and in this process a broker,\n" +
			"Godwit's manager, an agent for each hub, and simulated clusters. Enroll the hubs, look at what a\n" +
			"migration would do, and move clusters. Then move some of which one is refused by the target hub and\n" +
			"returns, and abort a migration. The demo counts the objects of the clusters on both hubs.\n\n" +
			"The simulated clusters play the agents of Open Cluster Management and the import controller of each\n" +
			"hub. `make e2e-hub` moves clusters with Open Cluster Management's own agents.\n\n" +
			"The demo reads no kubeconfig. At its end, it stops the control planes and removes all files. It\n" +
			"needs the binaries that `make controlplane` compiles, and the go command, which downloads the CRDs.",
		Example: "  # Run the demo\n" +
			"  " + program + " demo clusters\n\n" +
			"  # Keep the hubs afterwards, to look at them with kubectl\n" +
			"  " + program + " demo clusters --keep",
		RunE: func(c *cobra.Command, args []string) error {
			if err := refuse(c, args); err != nil {
				return err
			}
			return RunClusters(c.Context(), o)
		},
	}
	o.addTo(c)
	return c
}

// refuse returns an error for flags that choose a cluster, so that no user believes that
// the demo runs there.
func refuse(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", c.CommandPath(), args)
	}
	var err error
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			err = fmt.Errorf("remove --%s: the demo starts its own control plane", f.Name)
		}
	})
	return err
}
