package bridge

import (
	"github.com/godwit-dev/godwit"
)

// Each fix is a function of the names in it: a finding calls it with those of its CRD, and the reason of the finding with
// placeholders.

func keepController() godwit.Fix {
	return godwit.Do("do not install the controller of the next release before step " + string(Migrate) + " has ended")
}

func tryEveryObject(crd string) godwit.Fix {
	return godwit.Do("before step "+string(Migrate)+" see which objects it refuses", godwit.RunMigration{CRD: crd, DryRun: true})
}

func readReleaseNotes() godwit.Fix {
	return godwit.Do("see in the release notes whether a release in between moves their values, and install it first")
}

func migrateAfterNext(crd string) godwit.Fix {
	return godwit.Do("with the controller of the next release migrate", godwit.RunMigration{CRD: crd})
}
