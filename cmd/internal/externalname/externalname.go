package externalname

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// Command is `godwit externalname`.
func Command(a *frame.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "externalname",
		Short: "Audit, rename, save and restore external names of Crossplane",
		Long: "The annotation crossplane.io/external-name identifies the external resource of a managed\n" +
			"resource. A provider that writes names in another form than before needs the annotations of\n" +
			"all its managed resources to change, without a second external resource for any of them.\n\n" +
			"audit finds names that are lost or shared, for every provider as it is.\n\n" +
			"The commands below plan new names by an expression, write them one after the other with a\n" +
			"proof that the external resource is still the same, and restore the old names. An annotation\n" +
			"of each managed resource says how far its renaming is, so that the same command resumes an\n" +
			"interrupted run.",
	}
	frame.Parent(c)
	c.AddCommand(planCommand(a), runCommand(a), rollbackCommand(a), readyCommand(a), saveCommand(a), restoreCommand(a), auditCommand(a))
	return c
}
