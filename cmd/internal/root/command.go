package root

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// Command returns the tree of all commands, for documentation.
func Command() *cobra.Command {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	return rootCommand(frame.New([]string{"godwit"}, streams, clock.RealClock{}))
}
