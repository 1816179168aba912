package releasecheck

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
)

// Each fix is a function of the names in it: a finding calls it with those of its CRD, and the reason of the finding with
// placeholders.

// Fixes for the author of the file, of the list of versions and of the conversion.
const (
	markOne          = "set storage: true on one entry of spec.versions"
	markOneAlone     = markOne + ", and false on the others"
	removeOne        = "remove one of its entries"
	callVersion      = "call the version v1 or v1alpha1, for example"
	addSchema        = "add a schema, even if the version is not served"
	webhookOrNone    = "set strategy: Webhook, or remove the webhook"
	noneOrWebhook    = "set strategy: None, or Webhook"
	addClientConfig  = "say where the webhook is, in webhook.clientConfig"
	setOne           = "set exactly one of url and service"
	addReviewVersion = "set webhook.conversionReviewVersions: [v1]"
	pruneUnknown     = "set preserveUnknownFields: false"
)

// oneOf is a fix with one way for each text.
func oneOf(ways ...string) godwit.Fix {
	var fix godwit.Fix
	for _, do := range ways {
		fix = fix.Or(godwit.Do(do))
	}
	return fix
}

func callIt(name string) string { return "call the CRD " + name }

func leaveAs(value string) string {
	return fmt.Sprintf("leave the field %s, or make a CRD of another name and move the objects", value)
}

func migrateFirst(crd string) godwit.Fix {
	return godwit.Do("before this release migrate", godwit.RunMigration{CRD: crd})
}

func keepVersion(crd, version string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("keep %s for one more release that stores another version", version)).
		Then("migrate after that release", godwit.RunMigration{CRD: crd})
}

func addVersion(crd *apiextensionsv1.CustomResourceDefinition, version string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("add version %s with served: false to the next release and to the CRD of the cluster", version), kube.AddVersions(crd, version)).
		Then("migrate", godwit.RunMigration{CRD: crd.Name})
}

func awaitDeletion() godwit.Fix { return godwit.Do("wait until it is gone, and check again") }

func shortenSchemas() godwit.Fix {
	return oneOf("shorten the schemas, as without descriptions: controller-gen crd:maxDescLen=0", "see that etcd has a higher --max-request-bytes")
}

func stopPreserving() godwit.Fix {
	return godwit.Do("write `preserveUnknownFields: false` into the spec of the file, and check again")
}

// removeConversion is the fix for a server-side apply that ends the conversion, while another manager keeps a part of it.
func removeConversion(live *apiextensionsv1.CustomResourceDefinition) godwit.Fix {
	patch := kube.RemoveConversion(live)
	patch.Owner = godwit.Owner{} // the release does not have the field, and does not conflict
	return godwit.Do("right before the release, remove the conversion webhook, which the release does not have", patch).Then("check again")
}

func forceConflicts() godwit.Fix {
	return godwit.Do("apply it with --force-conflicts, if the fields of the file are right")
}

func fixFile() godwit.Fix { return godwit.Do("fix the file, and check again") }

func prove(crd string) godwit.Fix {
	return godwit.Do("prove it from etcd", godwit.VerifyMigration{CRD: crd})
}

// unserveFirst is the fix for versions that the CRD of the cluster serves: a run does not remove managedFields that name a served
// version. A user who does not make the releases patches the CRD.
func unserveFirst(live *apiextensionsv1.CustomResourceDefinition, text string, versions ...string) godwit.Fix {
	run := godwit.RunMigration{CRD: live.Name}
	return godwit.Do(fmt.Sprintf("release first a CRD that does not serve %s, and migrate after that release", text), run).
		Or(godwit.Do(fmt.Sprintf("if the releases are not yours, once no client uses %s", text), kube.SetServed(live, false, versions...), run))
}

// listFirst is the fix for a list of the objects that failed, and another check.
func listFirst(fix godwit.Fix) godwit.Fix { return fix.Then("check again") }

func serveStorage() godwit.Fix { return godwit.Do("set served: true on the storage version") }

func serve(version string) godwit.Fix { return godwit.Do("set served: true on version " + version) }

func unserveInRelease() godwit.Fix {
	return godwit.Do("let a release come first that has it with served: false")
}

func keepFields() godwit.Fix {
	return oneOf("keep the fields in the schemas of the release", "convert the objects by a webhook, which moves their values",
		"copy the values to where the release reads them, before the release")
}

func keepConversion() godwit.Fix {
	return oneOf("keep spec.conversion", "see that the storage version has the fields of all versions")
}

// InstallRelease is the fix that installs a release in between, which converts the objects.
func InstallRelease(crd, release, from, to string) godwit.Fix {
	return thenMigrate(crd, godwit.Do(fmt.Sprintf("install the release of %s, with its controller, which converts %s to %s", release, from, to)))
}

// FindRelease is the fix if no such release is known: it is between the live one and the next one.
func FindRelease(crd, live, next, from, to string) godwit.Fix {
	return thenMigrate(crd, godwit.Do(fmt.Sprintf("install a release between %s and %s, with its controller, whose CRD has %s and one of %s and converts by a webhook",
		live, next, from, to)))
}

// InstallAny has both ways to have a release in between convert, for a reason.
func InstallAny() godwit.Fix {
	return InstallRelease(placeholder.Name, placeholder.Release, placeholder.Version, placeholder.Version).
		Or(FindRelease(placeholder.Name, placeholder.Release, placeholder.Release, placeholder.Version, placeholder.Version))
}

func thenMigrate(crd string, install godwit.Fix) godwit.Fix {
	return install.Then("migrate", godwit.RunMigration{CRD: crd}).Then("check again")
}

// NeedNoValue is the fix for fields whose values a user does not need.
func NeedNoValue() godwit.Fix {
	return godwit.Do("if no value of a field is needed, say so with --answer=PATH=" + string(advise.Unused))
}

// serveFirst is the fix for stored versions that the CRD of the cluster does not serve.
func serveFirst(live *apiextensionsv1.CustomResourceDefinition, versions ...string) godwit.Fix {
	return godwit.Do("serve "+strings.Join(versions, ", ")+" for the time of the check", kube.SetServed(live, true, versions...)).Then("check again")
}

func tryFile(file string) godwit.Fix {
	return godwit.Do("have the API server try the file", godwit.TryFile{File: file})
}

// checkCluster is the fix for what only a cluster shows.
func checkCluster(file string) godwit.Fix {
	return godwit.Do("check against a cluster that has the previous release", godwit.CheckRelease{File: file})
}

func keepCRD(crd string) godwit.Fix {
	return oneOf("keep "+crd+" in the release", "see that no cluster has objects of "+crd)
}

func keepValid() godwit.Fix {
	return oneOf("leave new fields optional or give them a default, and keep valid what was valid",
		"before this release change the objects that it would refuse", "make the change in a new version, and convert by a webhook")
}

// CheckReferences is the fix for a check with --references=false.
func CheckReferences() godwit.Fix { return godwit.Do("check without --references=false") }
