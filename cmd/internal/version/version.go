package version

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Command is `godwit version`.
func Command(a *frame.App) *cobra.Command {
	o := &options{App: a}
	c := &cobra.Command{
		Use:   "version [--client]",
		Short: "Print the versions of godwit, the managers and the API server",
		Long: "Print the versions of this program, of the managers and agents in the cluster, and of the API\n" +
			"server. A manager writes its version into the labels of the Lease by which it is elected; this\n" +
			"command reads the Leases of all namespaces, or of the one that --namespace names.\n\n" +
			"What can't be read has its cause in the output. `" + a.Program + " rbac --for=version` prints the\n" +
			"permission to list Leases.\n\n" +
			"Exit codes: 0 printed, also without a cluster or without that permission; 2 the cluster that the\n" +
			"kubeconfig chooses does not answer.",
		Example: "  # What runs here?\n" +
			"  " + a.Program + " version\n\n" +
			"  # The version of this program alone, without a request\n" +
			"  " + a.Program + " version --client -o jsonpath='{.items[0].version}'",
		Args: frame.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().BoolVar(&o.client, "client", false, "print the version of this program alone, without a request to a cluster")
	o.output.AddDataTo(c, nil) // the programs that were found are printed in every case
	return c
}

func (o *options) run(ctx context.Context) error {
	all, failed := []Program{client(frame.Build())}, error(nil)
	if !o.client {
		var more []Program
		more, failed = o.ofCluster(ctx)
		all = append(all, more...)
	}
	err := frame.WriteDocument(o.Streams.Out, o.output, render.NewList("VersionList", all), nil, func(w io.Writer) error {
		for _, p := range all {
			if _, err := fmt.Fprintln(w, p.line()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return failed
}

func client(v frame.Version) Program {
	return Program{
		Role: RoleClient, State: StateFound, Version: v.Version, Commit: v.Commit, Modified: v.Modified, GoVersion: v.GoVersion, Platform: v.Platform,
	}
}

// line returns a program in words.
func (p Program) line() string {
	switch p.Role {
	case RoleClient:
		return "godwit " + p.Version + p.commit() + ", " + p.GoVersion + ", " + p.Platform
	case RoleAPIServer:
		if p.State == StateFound {
			return "API server " + p.Version + " at " + p.Server
		}
		return "API server not readable: " + p.Message
	}
	switch p.State {
	case StateFound:
		return "manager " + p.Version + ", " + p.Component + " in namespace " + p.Namespace
	case StateNotRunning:
		return "manager " + p.Version + ", " + p.Component + " in namespace " + p.Namespace + ", is not running: " + p.Message
	case StateNotFound:
		return "manager not found: " + p.Message
	}
	return "manager not readable: " + p.Message
}

func (p Program) commit() string {
	switch {
	case p.Commit == "":
		return ""
	case p.Modified:
		return " (commit " + p.Commit + ", modified)"
	}
	return " (commit " + p.Commit + ")"
}
