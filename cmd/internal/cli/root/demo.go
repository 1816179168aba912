//go:build !nodemo

package root

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/demo"
)

// demoCommands is the demo. The image is built without: it has neither the servers
// nor a Go command, and what starts them makes folders as soon as a program holds
// it, where a container has a file system that nobody may write to.
func demoCommands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{demo.Command(a.Program, a.Streams)}
}
