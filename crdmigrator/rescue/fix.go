package rescue

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/kube"
)

// Each fix is a function of the names in it: a finding calls it with those of its CRD, and the reason of the finding with
// placeholders.

func keepFinalizer(crd string) godwit.Fix {
	return godwit.Do("keep its finalizer: without it the objects stay in etcd, where no client can read them",
		godwit.Show{Object: kube.CRDObject(crd), Output: "jsonpath={.metadata.finalizers}"})
}

func bringUpOrReplace(crd string) godwit.Fix {
	return godwit.Do("bring the webhook up").
		Or(godwit.Do("if it is gone for good, rescue the objects without it", godwit.RescueObjects{CRD: crd, WithoutWebhook: true}))
}

func rescueWithWebhook() godwit.Fix { return godwit.Do("rescue it without --conversion=none") }

func migrateWithWebhook(crd string) godwit.Fix {
	return godwit.Do("migrate the objects with the webhook", godwit.RunMigration{CRD: crd})
}

func addFields(crd, version string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("add the fields to the schema of %s, or x-kubernetes-preserve-unknown-fields to the object that has them", version),
		godwit.Edit{Object: kube.CRDObject(crd)})
}

func pauseClient(crd string) godwit.Fix {
	return godwit.Do("pause that client for the time of the rescue, and run it again", godwit.RescueObjects{CRD: crd})
}

func runAgain(crd string) godwit.Fix {
	return godwit.Do("run the rescue again", godwit.RescueObjects{CRD: crd}).
		Or(godwit.Do("if it lasts, see which API server still uses an old spec of the CRD"))
}

func useManifest() godwit.Fix {
	return godwit.Do("give the manifest of a release that has it, or none: the version then keeps every field")
}

func useManifestOf(crd string) godwit.Fix {
	return godwit.Do("give the manifest of an old release of " + crd)
}

func useNewerRelease(crd string) godwit.Fix {
	return godwit.Do(format.Do+", and have it finish or undo the rescue", godwit.RescueObjects{CRD: crd})
}
