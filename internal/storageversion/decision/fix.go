package decision

import (
	"fmt"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
)

// Each fix is a function of the names in it. A finding calls it with the names of its object, and the reason of the finding with
// placeholders, so that a plan and an explanation of the reason have the same fix. Package fixtest finds a finding whose fix
// differs.

// placeGrant stands for the missing permission of a finding.
var placeGrant = Grant{Verb: "VERB", Resource: schema.GroupResource{Resource: placeholder.Resource}}

func waitEstablished(crd string) godwit.Fix {
	return godwit.Do("wait", godwit.WaitFor{Object: kube.CRDObject(crd), Condition: string(apiextensionsv1.Established)})
}

func freeNames(crd *apiextensionsv1.CustomResourceDefinition) godwit.Fix {
	return godwit.Do(fmt.Sprintf("see which CRD of group %s has the name", crd.Spec.Group), godwit.Show{
		Object: kube.CRDObject(""), Output: "custom-columns=CRD:.metadata.name,NAMES:.status.acceptedNames",
	}).Then("delete that one, or choose other names", godwit.Edit{Object: kube.CRDObject(crd.Name)})
}

func seeDeletion(crd string) godwit.Fix {
	return godwit.Do("nothing is left to migrate; if the deletion hangs, see which finalizer or which objects it waits for", godwit.Show{
		Object: kube.CRDObject(crd), Output: `jsonpath={.metadata.finalizers} {.status.conditions[?(@.type=="Terminating")].message}`,
	})
}

func markStorageVersion(crd string) godwit.Fix {
	return godwit.Do("set storage: true on one entry of spec.versions", godwit.Edit{Object: kube.CRDObject(crd)})
}

// Serve is the fix for a version that a run needs and the CRD does not serve.
func Serve(crd *apiextensionsv1.CustomResourceDefinition, version string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("serve version %s for the time of the run", version), kube.SetServed(crd, true, version))
}

func writeObject(crd string, write Write, version string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("use the write %s", write), godwit.RunMigration{CRD: crd, Write: string(write)}).
		Or(godwit.Do("add subresources.status to version "+version, godwit.Edit{Object: kube.CRDObject(crd)}))
}

func restoreVersion(crd *apiextensionsv1.CustomResourceDefinition, version string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("bring version %s back with served: false, then run again", version), kube.AddVersions(crd, version)).
		Or(godwit.Do("rescue the objects, which does both and removes the version again", godwit.RescueObjects{CRD: crd.Name}),
			godwit.Do("prove that no object is at it", godwit.VerifyMigration{CRD: crd.Name}))
}

func awaitMigration(migration string) godwit.Fix {
	return godwit.Do("wait until it ends, or delete it", godwit.Show{Object: godwit.Object{Resource: migration}})
}

func deleteMigration(migration string) godwit.Fix {
	return godwit.Do("if no controller carries it out, delete it", godwit.Delete{Object: godwit.Object{Resource: migration}})
}

// agree is the fix for a CRD whose spec several managers write. A user can remove the record of the changes only if it is an
// annotation.
func agree(crd, annotation string) godwit.Fix {
	fix := godwit.Do("let these managers agree on one spec")
	if annotation == "" {
		return fix.Then("wait: the migration resumes within an hour of the last of these changes")
	}
	return fix.Then("remove the record of the changes", kube.RemoveAnnotation(kube.CRDObject(crd), annotation))
}

// replaceServer is the fix for an API server with a stale lease. settle is how long to wait before the next run, after the server
// is back; empty if the run waits by itself.
func replaceServer(lease, settle string) godwit.Fix {
	fix := godwit.Do("bring it back")
	if settle != "" {
		fix = fix.Then(fmt.Sprintf("wait %s before the next run", settle))
	}
	return fix.Or(godwit.Do("if it is gone for good, delete its lease",
		godwit.Delete{Object: godwit.Object{Resource: "lease", Namespace: metav1.NamespaceSystem, Name: lease}}))
}

// RenewCredentials is the fix for credentials that the API server does not accept.
func RenewCredentials() godwit.Fix {
	return godwit.Do("renew them, and check with `kubectl auth whoami`").Then("run the same command again, which resumes a run")
}

// freeEtcd is the fix for an etcd without space.
func freeEtcd() godwit.Fix {
	return godwit.Do("free space in etcd: `etcdctl compact REVISION`, `etcdctl defrag` for each member, then `etcdctl alarm disarm`").
		Then("run the same command again, which resumes a run")
}

// PutKeyBack is the fix for objects whose encryption key the API server lacks.
func PutKeyBack(resource string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("see the name of the key in etcd: `godwit resource verify %s --etcd-servers=URL`", resource)).
		Then("put that key back as the last one of its provider, or the provider back as the last one, in the encryption configuration of every API server").
		Then("write all objects again before you remove it: `godwit resource run " + resource + "`")
}

// deleteKeys is the fix for objects that only a client of etcd reaches.
func deleteKeys(crd *apiextensionsv1.CustomResourceDefinition) godwit.Fix {
	folder := fmt.Sprintf("/registry/%s/%s/", crd.Spec.Group, crd.Spec.Names.Plural)
	if crd.Name == placeholder.Name {
		folder = "/registry/GROUP/RESOURCE/"
	}
	return godwit.Do(fmt.Sprintf("see their keys in etcd: `etcdctl get --prefix %s --keys-only`", folder)).
		Then("save those that you need, as in `etcdctl get KEY --print-value-only`").
		Then("delete each of these keys: `etcdctl del KEY`").
		Then("create the saved objects again by the API server, at the scope of the CRD")
}

// seeEtcdWrites is the fix for API servers that all fail to renew their leases.
func seeEtcdWrites() godwit.Fix {
	return godwit.Do("see whether etcd has the alarm NOSPACE: `etcdctl alarm list`. If it has, free space: `etcdctl compact REVISION`, `etcdctl defrag` for each member, then `etcdctl alarm disarm`").
		Or(godwit.Do("see the leases, and wait until an API server renews its own", godwit.Show{Object: godwit.Object{Resource: "lease", Namespace: metav1.NamespaceSystem}}))
}

// giveOwnLeases is the fix for API servers that share a lease, or have none.
func giveOwnLeases() godwit.Fix {
	return godwit.Do("see the endpoints and the leases", godwit.Show{Object: godwit.Object{Resource: "endpointslice", Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, Output: "yaml"},
		godwit.Show{Object: godwit.Object{Resource: "lease", Namespace: metav1.NamespaceSystem}}).
		Then("give each API server a host name of its own, and restart it").
		Or(godwit.Do("if no other API server runs, use --accept-stale-leases"))
}

func removeCheckpoint(crd, annotation string) godwit.Fix {
	return godwit.Do("if that release is gone for good, remove the checkpoint: the next run starts from the beginning",
		kube.RemoveAnnotation(kube.CRDObject(crd), annotation))
}

func resumeRescue(crd string) godwit.Fix {
	return godwit.Do("if no other client runs it, resume it", godwit.RescueObjects{CRD: crd}).
		Or(godwit.Do("restore the CRD as it was before", godwit.RescueObjects{CRD: crd, Undo: true}))
}

// MigrateDoubtful is the fix for a CRD whose status.storedVersions proves nothing.
func MigrateDoubtful(crd string) godwit.Fix {
	return godwit.Do("migrate them, which also removes that doubt", godwit.RunMigration{CRD: crd})
}

func migrateUntrimmed(crd string) godwit.Fix {
	return godwit.Do("migrate the objects, which writes only those that are at an old version, and trims", godwit.RunMigration{CRD: crd})
}

// ProveFromEtcd is a proof that does not need status.storedVersions.
func ProveFromEtcd(crd string) godwit.Fix {
	return godwit.Do("prove from etcd that no object is at an old version", godwit.VerifyMigration{CRD: crd})
}

func proveTrimmed(crd string, versions ...string) godwit.Fix {
	return ProveFromEtcd(crd).
		Or(godwit.Do("without access to etcd, put all versions back and migrate again", kube.SetStoredVersions(crd, versions...), godwit.RunMigration{CRD: crd}))
}

func seeServersHealthy() godwit.Fix {
	return godwit.Do("see that each API server is healthy since the change of the CRD, or set its feature gate APIServerIdentity, which is on by default")
}

// WriteStatus is the write of the status alone, after a dry run of it went through.
func WriteStatus(crd string) godwit.Fix {
	return godwit.Do("write the status alone, which was tried and passes", godwit.RunMigration{CRD: crd, Write: string(WriteStatusPatch)})
}

// TryStatus is a dry run of the write of the status, for which a permission is missing.
func TryStatus(crd, status string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("with the permission to patch %s, see whether writing the status alone passes", status),
		godwit.RunMigration{CRD: crd, Write: string(WriteStatusPatch), DryRun: true})
}

// dropAnnotation is the fix for annotations that leave no room for a checkpoint. The usual one is that of kubectl's client-side apply.
func dropAnnotation(crd, annotation string) godwit.Fix {
	return godwit.Do("if nothing needs the annotation, remove it; `kubectl apply --server-side` writes none", kube.RemoveAnnotation(kube.CRDObject(crd), annotation))
}

// AllWebhooks shows all configurations of webhooks, to find a webhook by its name.
var AllWebhooks = godwit.Show{Object: godwit.Object{Resource: "validatingwebhookconfigurations,mutatingwebhookconfigurations"}, Output: "wide"}

// Exempt exempts the user who migrates, and no other, from a webhook or a policy, which actions edit.
func Exempt(user, origin string, actions ...godwit.Action) godwit.Fix {
	return godwit.Do(fmt.Sprintf("for the time of the run, exempt its user by an entry of matchConditions of %s, {name: godwit, expression: 'request.userInfo.username != %s'}",
		origin, strings.ReplaceAll(strconv.Quote(user), "'", "''")), actions...)
}

// FindAndExempt is [Exempt] for a webhook whose configuration is not known.
func FindAndExempt(user, webhook string, actions ...godwit.Action) godwit.Fix {
	return Exempt(user, webhook, actions...).After("find the configuration of "+webhook, AllWebhooks)
}

// ExemptFrom is [Exempt] for a webhook or a policy of which only the name is known.
func ExemptFrom(user string, by apierror.Origin) godwit.Fix {
	if by.Kind == apierror.Webhook {
		return FindAndExempt(user, by.String())
	}
	return Exempt(user, by.String(), godwit.Edit{Object: godwit.Object{Resource: strings.ToLower(by.Kind), Name: by.Name}})
}

// LeaveBehind is a run that migrates only the objects whose write admission accepts.
func LeaveBehind(crd, write string) godwit.Fix {
	return godwit.Do("migrate what is not refused, without the trim", godwit.RunMigration{CRD: crd, Write: write, AcceptDenials: true})
}

// AcceptMutation lets a run store what admission changes at some paths.
func AcceptMutation(crd, write string, paths ...string) godwit.Fix {
	return godwit.Do("if any update may do so, migrate: the run stores these changes", godwit.RunMigration{CRD: crd, Write: write, AcceptChanges: strings.Join(paths, ",")})
}

// keepValues is the fix for values that a rewrite drops. paths are those that a run with consent gives up.
func keepValues(crd string, paths ...string) godwit.Fix {
	return godwit.Do("keep the values: add the fields to the schema of the storage version, or convert them by a webhook", godwit.Edit{Object: kube.CRDObject(crd)}).
		Or(giveUp(crd, paths...))
}

// giveUp is a run that drops the values at some paths.
func giveUp(crd string, paths ...string) godwit.Fix {
	return godwit.Do("if these values are needed no more, give them up", godwit.RunMigration{CRD: crd, AcceptLosses: strings.Join(paths, ",")})
}

// serveToTry serves old versions, so that a plan can try their objects.
func serveToTry(crd *apiextensionsv1.CustomResourceDefinition, versions ...string) godwit.Fix {
	return godwit.Do("serve these versions for the time of the run, so that it can try each object", kube.SetServed(crd, true, versions...)).
		Then(planAgain, godwit.PlanMigration{CRD: crd.Name})
}

// tryAgain is a dry run, which tries each object again.
func tryAgain(crd string) godwit.Fix {
	return godwit.Do("remove the cause that the message names, and try again", godwit.RunMigration{CRD: crd, DryRun: true})
}

func correctPaths(crd string) godwit.Fix {
	return godwit.Do("correct the path, or leave it out; the fields of each version", godwit.Show{Object: kube.CRDObject(crd), Output: "yaml"})
}

// TryEveryObject is a run that writes nothing.
func TryEveryObject(crd, write string) godwit.Fix {
	return godwit.Do("try every object", godwit.RunMigration{CRD: crd, Write: write, DryRun: true})
}

// PlanAgain is another plan.
func PlanAgain(crd string) godwit.Fix { return godwit.Do(planAgain, godwit.PlanMigration{CRD: crd}) }

// DeclareNoSideEffects is the fix for a webhook that the API server does not call in a dry run.
func DeclareNoSideEffects() godwit.Fix {
	return godwit.Do("if the webhook has no side effects, set sideEffects: None in its configuration").Or(godwit.Do("migrate: a run shows it"))
}

// EditObject corrects one object.
func EditObject(o godwit.Object) godwit.Fix {
	return godwit.Do("fix the object", godwit.Edit{Object: o})
}

// BringUp is the fix for a webhook that does not answer. where shows its configuration, or its endpoints.
func BringUp(where godwit.Show) godwit.Fix {
	return godwit.Do("bring the webhook up; where it is", where)
}

// BringUpConversion is [BringUp] for the conversion webhook of a CRD, whose configuration is in the CRD.
func BringUpConversion(crd string) godwit.Fix {
	return BringUp(godwit.Show{Object: kube.CRDObject(crd), Output: "jsonpath={.spec.conversion.webhook.clientConfig}"})
}

const planAgain = "plan again"

// readiness shows the failed health checks of the API server.
var readiness = godwit.Request{Path: "/readyz?verbose"}

func seeAPIService(apiservice string) godwit.Fix {
	return godwit.Do("see whether another API server serves the group", godwit.Show{Object: godwit.Object{Resource: "apiservice", Name: apiservice}})
}

func removeAPIService(apiservice string) godwit.Fix {
	return godwit.Do("if the CRD is the one in use, delete the APIService: the API server then makes one for the CRD", godwit.Delete{Object: godwit.Object{Resource: "apiservice", Name: apiservice}}).
		Or(godwit.Do("if the other server is the one in use, migrate nothing: the CRD and its objects are leftovers"))
}

func awaitLessLoad() godwit.Fix { return godwit.Do("wait until the API server has less load") }

func seeReadiness() godwit.Fix { return godwit.Do("see what is wrong with it", readiness) }

func seeLoad() godwit.Fix {
	return godwit.Do("see whether the API server and etcd are overloaded", readiness)
}

func seeRefusal(path string) godwit.Fix {
	return godwit.Do("see which server refuses it", godwit.Request{Path: path, Verbose: true})
}

const restore = "restore the object that the message names from a backup; etcd shows all objects"

// RestoreObject is the fix for an object that the API server can't read at any version.
func RestoreObject(crd string) godwit.Fix {
	return godwit.Do(restore, godwit.VerifyMigration{CRD: crd})
}

func addVersion(crd *apiextensionsv1.CustomResourceDefinition, version string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("bring version %s back with served: false", version), kube.AddVersions(crd, version))
}

func rescueObjects(crd string) godwit.Fix {
	return godwit.Do("rescue the objects: the command brings the version back, migrates, and removes the version again", godwit.RescueObjects{CRD: crd})
}

// putBack adds a step to a fix: put a version back into status.storedVersions, and migrate. Without it, a run takes
// the objects at that version for migrated.
func putBack(fix godwit.Fix, crd, stored, storage string) godwit.Fix {
	return fix.Then(fmt.Sprintf("put %s back and migrate", stored), kube.SetStoredVersions(crd, stored, storage), godwit.RunMigration{CRD: crd})
}
