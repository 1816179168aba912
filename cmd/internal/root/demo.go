//go:build !nodemo

package root

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/demo"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// demoCommands is the demo. The image is built without: it has neither the servers
// nor a Go command, and what starts them makes folders as soon as a program holds
// it, where the file system of a container is read-only.
func demoCommands(a *frame.App) []*cobra.Command {
	return []*cobra.Command{demo.Command(a.Program, a.Streams)}
}
