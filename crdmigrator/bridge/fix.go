package bridge

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/internal/placeholder"
)

// Each fix is a function of the names in it: a finding calls it with those of its CRD, and the reason of the finding with
// placeholders.

const placeRelease = "RELEASE"

// installKnown is the fix with a release that the user could install in between.
func installKnown(crd, release, from, to string) godwit.Fix {
	return thenMigrate(crd, godwit.Do(fmt.Sprintf("install the release of %s, with its controller, which converts %s to %s", release, from, to)))
}

// versions are what a release in between has to convert.
type versions struct{ from, to string }

func installUnknown(crd, live, next string, v versions) godwit.Fix {
	return thenMigrate(crd, godwit.Do(fmt.Sprintf("install a release between %s and %s, with its controller, whose CRD has %s and one of %s and converts by a webhook",
		live, next, v.from, v.to)))
}

func thenMigrate(crd string, install godwit.Fix) godwit.Fix {
	return install.Then("migrate", godwit.RunMigration{CRD: crd}).Then("check again")
}

// installAny has both ways to have a release in between convert.
func installAny() godwit.Fix {
	return installKnown(placeholder.Name, placeRelease, placeholder.Version, placeholder.Version).
		Or(installUnknown(placeholder.Name, placeRelease, placeRelease, versions{placeholder.Version, placeholder.Version}))
}

func needNoValue() godwit.Fix {
	return godwit.Do("if no value of a field is needed, say so with --answer=PATH=" + string(advise.Unused))
}

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
