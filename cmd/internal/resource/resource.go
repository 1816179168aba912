package resource

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// Command is `godwit resource`.
func Command(a *frame.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "resource",
		Short: "Write objects again, after a change of the encryption key",
		Long: "Write the objects of any resource in etcd again: Secrets after a change of the encryption key or\n" +
			"provider, and resources that a new release of Kubernetes stores at another version.\n\n" +
			"An API server encrypts an object when it is written, with the first key of its configuration. It\n" +
			"still needs the old key for objects that were not written since: do not remove that key before.\n\n" +
			"Use plan to see what a run would write, run to write it, and verify to prove from etcd how every\n" +
			"object is stored. For custom resources whose CRD got another storage version, use `" + a.Program + " crd`.",
	}
	frame.Parent(c)
	c.AddCommand(planCommand(a), runCommand(a), verifyCommand(a))
	return c
}
