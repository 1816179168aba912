//go:build nodemo

package root

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
)

func demoCommands(*cli.App) []*cobra.Command { return nil }
