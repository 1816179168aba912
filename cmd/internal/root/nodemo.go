//go:build nodemo

package root

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

func demoCommands(*frame.App) []*cobra.Command { return nil }
