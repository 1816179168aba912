package crd

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
)

// Command is `godwit crd`.
func Command(a *cli.App) *cobra.Command {
	crd := &cobra.Command{
		Use:   "crd",
		Short: "Migrate custom resources to the storage version of their definition",
		Long: "A CustomResourceDefinition stores new objects at one version, its storage version.\n" +
			"Objects written before stay in etcd at the version they were written at, and\n" +
			"status.storedVersions remembers it: such a version must not be dropped. The\n" +
			"commands below find such objects, migrate them, prove from etcd that it is done, and\n" +
			"tell before a release whether it drops a version too early.",
	}
	cli.Parent(crd)
	crd.AddCommand(planCommand(a), runCommand(a), verifyCommand(a), checkCommand(a))
	return crd
}
