package doctor

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
)

// Each fix is a function of the names in it: a finding calls it with those of its object, and the reason of the finding with
// placeholders.

// placeObject stands for the object that a finding names.
func placeObject() godwit.Object { return godwit.Object{Resource: "RESOURCE", Name: placeholder.Name} }

// all makes a run scan all objects for references, even if spec.versions has no unserved version.
const all = "All"

// repair is a run that repairs references. references is [all] for a CRD without an unserved version in spec.versions, otherwise
// empty.
func repair(crd, references string) godwit.Fix {
	return godwit.Do("repair them", godwit.RunMigration{CRD: crd, OwnerReferences: references})
}

func repairBefore(crd string) godwit.Fix {
	return godwit.Do("before this release, repair them", godwit.RunMigration{CRD: crd, OwnerReferences: all})
}

func repairAfter(crd string) godwit.Fix {
	return godwit.Do("if the release does not serve the storage version of today, repair them after this release", godwit.RunMigration{CRD: crd, OwnerReferences: all})
}

func serve(crd *apiextensionsv1.CustomResourceDefinition, version string) godwit.Fix {
	return godwit.Do("serve version "+version, kube.SetServed(crd, true, version))
}

// serveAndRepair is the fix for references that can't name the storage version before it is served.
func serveAndRepair(served godwit.Fix, crd string) godwit.Fix {
	return served.Then("repair them", godwit.RunMigration{CRD: crd})
}

// upgradeChart is the fix for a release of Helm before its version goes.
func upgradeChart(namespace, release, apiVersion string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("before this release, upgrade the release %s in namespace %s with a chart that has %s", release, namespace, apiVersion))
}

// mapAPIs is the fix for a release of Helm whose version is gone.
func mapAPIs(namespace, release string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("replace the version in the manifest that Helm keeps, with a map file that names both versions: `helm mapkubeapis %s --namespace %s --mapfile FILE`", release, namespace))
}

func seeWhyUnlisted(crd string) godwit.Fix {
	return godwit.Do("if the owners can't be listed, see why", godwit.PlanMigration{CRD: crd})
}

// keepDependent and deleteDependent are the two fixes for an object whose owner does not exist.
func keepDependent(dependent string, remove godwit.Action) godwit.Fix {
	return godwit.Do("to keep "+dependent+", remove the reference", remove)
}

func deleteDependent(o godwit.Object) godwit.Fix {
	return godwit.Do("to delete it", godwit.Delete{Object: o})
}

// removeAt removes the reference at an index of an object, if it has the UID.
func removeAt(o godwit.Object, place string, uid any) godwit.Patch {
	path := "/metadata/ownerReferences/" + place
	return jsonPatch(o, test(path+"/uid", uid), operation("remove", path, nil))
}

// Fixes for a rule that names a version. The first three have a verb %s for the versions to name instead.
const (
	nameInWebhook  = "if the webhook knows %s, name it in the rule"
	nameInPolicy   = "if its expressions fit %s, name it in the rule"
	exclude        = "exclude %s"
	removeFromRule = "remove the version from the rule"
)

// applied is an object, and who applies the field in question.
type applied struct {
	godwit.Object
	owner godwit.Owner
}

// replace replaces a list of an object, if the list is still the one that was read.
func replace(o applied, path string, before, after []string, guards ...step) godwit.Patch {
	patch := jsonPatch(o.Object, append(guards, test(path, before), operation("replace", path, after))...)
	patch.Owner = o.owner
	return patch
}

// nameServed is the fix for a rule that would name no version.
func nameServed(o godwit.Object) godwit.Fix {
	return godwit.Do("name a version that is served", godwit.Edit{Object: o})
}

// ruleFix are all ways to fix a rule of a list.
func ruleFix(list string, knows ...string) godwit.Fix {
	var fix godwit.Fix
	for _, what := range append(knows, removeFromRule) {
		if what != removeFromRule {
			what = fmt.Sprintf(what, placeholder.Version)
		}
		fix = fix.Or(godwit.Do(what, replace(applied{Object: placeObject()}, list+"/INDEX/apiVersions", []string{"OLD"}, []string{placeholder.Version})))
	}
	return fix.Or(nameServed(placeObject()))
}

// readParameters is the fix for the paramKind of a policy. before and after are an apiVersion, and version is that of after.
func readParameters(o applied, before, after, version string) godwit.Fix {
	const path = "/spec/paramKind/apiVersion"
	patch := jsonPatch(o.Object, test(path, before), operation("replace", path, after))
	patch.Owner = o.owner
	return godwit.Do("if its expressions fit "+version+", read the parameters at it", patch)
}

// allowMeant is the fix for a rule of a role.
func allowMeant(o applied, path string, before, after []string) godwit.Fix {
	return godwit.Do("allow what the rule is meant for", replace(o, path, before, after))
}

// removeRule is the fix for a rule that would be empty.
func removeRule(o godwit.Object) godwit.Fix {
	return godwit.Do("remove the rule, or allow paths that are served", godwit.Edit{Object: o})
}

func deleteAPIService(name string) godwit.Fix {
	return godwit.Do("delete it", godwit.Delete{Object: godwit.Object{Resource: "apiservice", Name: name}})
}

// removeWebhook is the fix for a webhook that converts nothing. With several versions it is none, even if their schemas are equal:
// a schema that preserves unknown fields says nothing of what the webhook does with them.
func removeWebhook(remove godwit.Patch) godwit.Fix {
	return godwit.Do("if the CRD has only one version, remove the webhook, which converts nothing", remove)
}

func installService() godwit.Fix { return godwit.Do("install again what has this Service") }

func rescueWithoutWebhook(crd string) godwit.Fix {
	return godwit.Do("if it is gone for good, rescue the objects without it", godwit.RescueObjects{CRD: crd, WithoutWebhook: true})
}

// anyServed is the version in the fix if the storage version is not served.
const anyServed = "a version that is served"

func applyAt(apiVersion string) godwit.Fix {
	return godwit.Do("write " + apiVersion + " in these manifests, and apply them")
}

// unserve and addFields are the two fixes for a version whose schema lacks fields.
func unserve(crd, version string, patch godwit.Patch) godwit.Fix {
	return godwit.Do("if no client uses "+version+", stop serving it", patch).Then("remove the entries", godwit.RunMigration{CRD: crd})
}

func addFields(version string) godwit.Fix {
	return godwit.Do("add the fields to the schema of " + version + " in the release of the CRD")
}

// step is one operation of a JSON patch that a user runs.
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func operation(op, path string, value any) step { return step{op, path, value} }

func test(path string, value any) step { return step{"test", path, value} }

func jsonPatch(o godwit.Object, steps ...step) godwit.Patch {
	body, err := json.Marshal(steps)
	if err != nil {
		panic(err) // strings and lists of strings have a JSON form
	}
	return godwit.Patch{Object: o, Type: godwit.PatchJSON, Body: string(body)}
}
