package crd

import (
	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/rescue"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// Command returns `godwit crd`. Packages check and doctor import this package, so the caller adds their commands.
func Command(a *frame.App) *cobra.Command {
	crd := &cobra.Command{
		Use:   "crd",
		Short: "Migrate custom resources to the storage version of their CRD",
		Long: "Migrate custom resources to the storage version of their CRD.\n\n" +
			"A CRD stores new objects at one version, its storage version. Objects that were written\n" +
			"before stay in etcd at an old version, and status.storedVersions lists that version. Do not\n" +
			"remove such a version from the CRD: its objects would become unreadable.\n\n" +
			"Use plan to find old objects, run to migrate them, verify to prove from etcd that all are\n" +
			"migrated, and check to test the CRDs of your next release, also of one that skips others. Use rescue if\n" +
			"objects are unreadable already.",
	}
	frame.Parent(crd)
	crd.AddCommand(planCommand(a), runCommand(a), verifyCommand(a), rescue.Command(a, CompleteNames(a)))
	return crd
}
