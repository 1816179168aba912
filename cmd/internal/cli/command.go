package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Command is the tree of all commands, to be described and not to be run.
func Command() *cobra.Command {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	a := &app{program: "godwit", streams: streams, console: newConsole(streams.ErrOut), cluster: genericclioptions.NewConfigFlags(true)}
	return a.rootCommand()
}
