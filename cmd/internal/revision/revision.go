package revision

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// Command is `godwit revision`.
func Command(a *frame.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "revision",
		Short: "Upgrade objects that ControllerRevisions store",
		Long: "KubeVirt stores the instance type and the preference of each VirtualMachine in\n" +
			"ControllerRevisions, at the API version of that time. You can't drop an API version while\n" +
			"a ControllerRevision stores an object at it. A storage version migration does not change\n" +
			"these objects.\n\n" +
			"The commands below list the old revisions, replace them by revisions at the target\n" +
			"version, and report which versions you can drop. Annotations of the revisions say how far\n" +
			"an upgrade is, so that this command on another machine, or the manager, resumes it.",
	}
	frame.Parent(c)
	c.AddCommand(planCommand(a), runCommand(a), statusCommand(a), rollbackCommand(a), fixCommand(a))
	return c
}
