package demo

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Command is `godwit demo`; program is what a person types for godwit.
func Command(program string, streams genericiooptions.IOStreams) *cobra.Command {
	o := Options{Program: program, Out: streams.Out, ErrOut: streams.ErrOut}
	c := &cobra.Command{
		Use:   "demo [--keep]",
		Short: "See a migration on a control plane of its own; touches no cluster",
		Long: "Start etcd and kube-apiserver on this machine, install the Gateway API's real\n" +
			"definitions, create 2,000 objects, and play the whole story: an upgrade, a plan, a run\n" +
			"that one object resists, the run that finishes it, the proof from etcd, and the end of\n" +
			"the old version. No kubeconfig is read; in the end nothing is left.\n\n" +
			"It needs the servers, which `make controlplane` compiles, and the go command, by which\n" +
			"it gets the definitions. `" + program + " demo revisions` is another story, of stashed objects.",
		Example: "  " + program + " demo\n\n" +
			"  # Look around in the cluster afterwards\n  " + program + " demo --keep",
		RunE: func(c *cobra.Command, args []string) error {
			if err := refuse(c, args); err != nil {
				return err
			}
			return Run(c.Context(), o)
		},
	}
	o.addTo(c)
	c.AddCommand(revisionsCommand(program, streams))
	return c
}

func (o *Options) addTo(c *cobra.Command) {
	c.Flags().BoolVar(&o.Keep, "keep", false, "leave the cluster running until Ctrl-C, and write a kubeconfig for it")
	c.Flags().StringVar(&o.Kubeconfig, "write-kubeconfig", DefaultKubeconfig, "where --keep writes the kubeconfig; removed in the end")
}

func revisionsCommand(program string, streams genericiooptions.IOStreams) *cobra.Command {
	o := Options{Program: program, Out: streams.Out, ErrOut: streams.ErrOut}
	c := &cobra.Command{
		Use:   "revisions [--keep]",
		Short: "See an upgrade of stashed objects on a control plane of its own; touches no cluster",
		Long: "Start etcd and kube-apiserver on this machine, install KubeVirt's definitions, create\n" +
			"virtual machines and a snapshot as KubeVirt has left them since v0.56, and play the whole\n" +
			"story: a plan, a run, what it held back and why, the end of the retention, and the end of\n" +
			"the old versions. No kubeconfig is read; in the end nothing is left.\n\n" +
			"It needs the servers, which `make controlplane` compiles, and the go command, by which\n" +
			"it generates the definitions from KubeVirt's API types: half a minute, once.",
		Example: "  " + program + " demo revisions\n\n" +
			"  # Look around in the cluster afterwards\n  " + program + " demo revisions --keep",
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

// refuse keeps a person from believing that this runs on the cluster that was
// named.
func refuse(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but was given %q", c.CommandPath(), args)
	}
	var err error
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			err = fmt.Errorf("--%s means nothing here: the demo runs on a control plane of its own", f.Name)
		}
	})
	return err
}
