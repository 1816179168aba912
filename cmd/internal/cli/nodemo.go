//go:build nodemo

package cli

import "github.com/spf13/cobra"

func (*app) demoCommands() []*cobra.Command { return nil }
