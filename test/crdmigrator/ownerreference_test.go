package crdmigrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/walk"
)

// TestGarbageCollectionOfOldVersions has the facts of docs/adr/0056-owner-references.md, from the real kube-controller-manager.
func TestGarbageCollectionOfOldVersions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, ownPlane(t))
	w.flip()
	for _, owner := range []string{"served", "created-late", "before", "background", "foreground", "let-go", "control", "second-control"} {
		w.create(w.config, "v2", owner)
	}
	for _, owner := range []string{"served", "before", "background", "foreground", "let-go"} {
		w.dependent("of-"+owner, w.reference("v1", owner))
	}
	w.dependent("of-control", w.reference("v2", "control"))
	w.dependent("of-second-control", w.reference("v2", "second-control"))

	stop, err := w.plane.StartControllerManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.deleteOwner("served", metav1.DeletePropagationBackground)
	w.awaitNoDependent("a version that is served, and is not the storage version, is looked up", "of-served")

	w.setVersions(version("v1", false, false), version("v2", true, true))
	w.awaitNotServed("v1")
	w.dependent("of-created-late", w.reference("v1", "created-late"))
	w.awaitNoDependent("the garbage collector takes the 404 of the version for that of the owner, until it discovers the API again", "of-created-late")
	if _, err := w.at("v2").Get(t.Context(), "created-late", metav1.GetOptions{}); err != nil {
		t.Errorf("its owner exists all the same: %v", err)
	}
	if err := stop(); err != nil { // a new one discovers at once, and the running one after at most 30 s
		t.Fatal(err)
	}
	w.deleteOwner("before", metav1.DeletePropagationBackground)
	if stop, err = w.plane.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.deleteOwner("control", metav1.DeletePropagationBackground)
	w.awaitNoDependent("the garbage collector works", "of-control")

	w.deleteOwner("background", metav1.DeletePropagationBackground)
	w.deleteOwner("foreground", metav1.DeletePropagationForeground)
	w.deleteOwner("let-go", metav1.DeletePropagationOrphan)
	w.deleteOwner("second-control", metav1.DeletePropagationBackground)
	w.awaitNoDependent("the garbage collector has come to what was deleted before", "of-second-control")
	await(w.t, "the owner is let go", func() bool {
		return len(w.readDependent("of-let-go").OwnerReferences) == 0
	})
	if got := w.readDependent("of-background"); got.DeletionTimestamp != nil {
		t.Errorf("the dependent of a deleted owner is being deleted: %v", got)
	}
	if _, err := w.at("v2").Get(t.Context(), "foreground", metav1.GetOptions{}); err != nil {
		t.Errorf("the deletion in the foreground does not wait: %v", err)
	}

	report := w.mustRepair(w.config)
	if report.Counts.Migrated != 1 {
		t.Errorf("repaired %+v, want the dependent of the owner that exists", report)
	}
	w.awaitNoDependent("the deletion in the foreground continues", "of-foreground")
	await(w.t, "the deletion in the foreground ends", func() bool {
		_, err := w.at("v2").Get(t.Context(), "foreground", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if got := w.readDependent("of-background").OwnerReferences[0].APIVersion; got != w.group+"/v1" {
		t.Errorf("the reference to a deleted owner names %s, want it as it was", got)
	}
	w.patchDependent("of-before", "/metadata/ownerReferences/0/apiVersion", w.group+"/v2")
	w.patchDependent("of-background", "/metadata/ownerReferences/0/apiVersion", w.group+"/v2")
	w.awaitNoDependent("a reference to an owner that is gone deletes the dependent once its version is served", "of-background")
	if got := w.readDependent("of-before"); got.DeletionTimestamp != nil {
		t.Errorf("the dependent of an owner that this garbage collector has never seen is being deleted: %v", got)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.plane.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitNoDependent("the next garbage collector reads the reference as it is now", "of-before")
}

// TestWebhookOfAnOldVersion: the webhook does not answer, so that a request which the API server sends to it fails.
func TestWebhookOfAnOldVersion(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.flip()
	w.create(w.config, "v2", "object")
	w.mustMigrate(newMigrator(t, w.config, storageversion.Options{Policy: quickSettle}))
	fail, none, url := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, "https://127.0.0.1:1/"
	webhooks := w.admission().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := webhooks.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.group},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "guard." + w.group, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{w.group}, APIVersions: []string{"v1"}, Resources: []string{w.plural}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = webhooks.Delete(context.WithoutCancel(t.Context()), w.group, metav1.DeleteOptions{}) })
	called := func() bool {
		err := w.at("v2").Delete(t.Context(), "object", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "failed calling webhook")
	}
	await(w.t, "a request at v2 is converted for a rule of v1, which is served", called)
	w.setVersions(version("v1", false, false), version("v2", true, true))
	w.awaitNotServed("v1")
	if !called() {
		t.Error("a request at v2 is converted for a rule of v1, which is in spec.versions")
	}
	w.setVersions(version("v2", true, true))
	await(w.t, "the webhook is not called once the CRD lacks v1", func() bool { return !called() })
}

// TestRepairOfOwnerReferences has a control plane of its own: a scan reads every object, and other tests have webhooks that hang.
func TestRepairOfOwnerReferences(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t, controlplane.EnforceOwnerReferences)
	t.Run("once", func(t *testing.T) { testRepair(t, plane) })
	t.Run("of changed dependents", func(t *testing.T) { testRepairOfChangedDependents(t, plane) })
	t.Run("killed", func(t *testing.T) { testKilledRepairs(t, plane) })
	t.Run("permissions", func(t *testing.T) { testPermissionsOfARepair(t, plane) })
}

// testRepair: a patch changes the version of a reference and nothing else.
func testRepair(t *testing.T, plane *controlplane.ControlPlane) {
	w := newWidgets(t, plane)
	w.flip()
	w.create(w.config, "v2", "owner")
	v1, other := w.reference("v1", "owner"), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	gone, elsewhere := v1, v1
	gone.UID = "gone"
	elsewhere.Name = "of-another-name"
	w.dependent("first", other, v1)
	w.dependent("current", w.reference("v2", "owner"))
	w.dependent("gone", gone)
	w.dependent("elsewhere", elsewhere)
	before := w.readDependent("first")
	gadgets := w.gadget(v1)

	found := w.find(w.config, ownerreference.StorageVersion)
	if names := w.names(found); !slices.Equal(names, []string{"elsewhere", "first", "gadget", "gone"}) {
		t.Errorf("dependents at another version than the storage version: %v", names)
	}
	w.setVersions(version("v1", false, false), version("v2", true, true))
	repairer := w.repairer(w.config)
	repairer.DryRun = true
	if report, err := repairer.Run(t.Context(), w.find(w.config, ownerreference.ServedVersions), nil); err != nil || report.Counts.Skipped != 2 {
		t.Errorf("a dry run: %+v, %v", report, err)
	}
	if after := w.readDependent("first"); after.ResourceVersion != before.ResourceVersion {
		t.Error("a dry run has changed the dependent")
	}
	if report := w.mustRepair(w.config); report.Counts != (godwit.Counts{Migrated: 2, Unchanged: 2}) {
		t.Errorf("a run: %+v, want two repaired, and those without an owner left", report)
	}
	w.mustKeepFields(gadgets)
	after := w.readDependent("first")
	v2 := v1
	v2.APIVersion = w.group + "/v2"
	if diff := cmp.Diff([]metav1.OwnerReference{other, v2}, after.OwnerReferences); diff != "" {
		t.Errorf("the references after the repair (-want +got):\n%s", diff)
	}
	if after.Data["of"] != before.Data["of"] || after.UID != before.UID {
		t.Errorf("the repair has changed more than a reference: %v", after)
	}
	if report := w.mustRepair(w.config); report.Counts.Migrated != 0 {
		t.Errorf("a second run: %+v, want nothing to repair", report)
	}
}

// testRepairOfChangedDependents: between the scan and the patch, other clients change what the scan has found.
func testRepairOfChangedDependents(t *testing.T, plane *controlplane.ControlPlane) {
	w := newWidgets(t, plane)
	w.flip()
	w.create(w.config, "v2", "owner")
	w.setVersions(version("v1", false, false), version("v2", true, true))
	v1 := w.reference("v1", "owner")
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	for _, name := range []string{"data", "moved", "repaired", "deleted", "created-again"} {
		w.dependent(name, v1)
	}
	found := w.find(w.config, ownerreference.ServedVersions)

	v2 := v1
	v2.APIVersion = w.group + "/v2"
	w.patchDependent("data", "/data/of", "another client")
	w.patchDependent("moved", "/metadata/ownerReferences", []metav1.OwnerReference{other, v1})
	w.patchDependent("repaired", "/metadata/ownerReferences", []metav1.OwnerReference{v2})
	w.deleteDependent("deleted")
	w.deleteDependent("created-again")
	w.dependent("created-again", v1)

	report, err := w.repairer(w.config).Run(t.Context(), found, nil)
	if want := (godwit.Counts{Migrated: 2, Unchanged: 1, Gone: 2}); err != nil || report.Counts != want {
		t.Fatalf("got %+v, %v, want %+v", report, err, want)
	}
	if got := w.readDependent("data"); got.Data["of"] != "another client" || !cmp.Equal(got.OwnerReferences[0], v2) {
		t.Errorf("a dependent with other data: %v", got)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{other, v2}, w.readDependent("moved").OwnerReferences); diff != "" {
		t.Errorf("a reference at another place (-want +got):\n%s", diff)
	}
	if got := w.readDependent("created-again").OwnerReferences[0]; !cmp.Equal(got, v1) {
		t.Errorf("an object of the same name that the scan has not seen: %v", got)
	}
	if _, err := w.dependents().Get(t.Context(), "deleted", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted dependent exists again: %v", err)
	}
}

// testKilledRepairs ends a repair at each of its requests, and runs it again each time.
func testKilledRepairs(t *testing.T, plane *controlplane.ControlPlane) {
	const dependents = 3
	w := newWidgets(t, plane)
	w.flip()
	w.create(w.config, "v2", "owner")
	w.setVersions(version("v1", false, false), version("v2", true, true))
	v1 := w.reference("v1", "owner")
	for i := range dependents {
		w.dependent(fmt.Sprintf("d-%d", i), v1)
	}
	for kill := int64(1); ; kill++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		var patches atomic.Int64
		config := rest.CopyConfig(w.config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				answer, err := next.RoundTrip(req)
				if req.Method == http.MethodPatch && patches.Add(1) == kill { // written, and the answer is lost
					cancel(errRepairKilled)
					return nil, errRepairKilled
				}
				return answer, err
			})
		})
		_, err := w.repair(ctx, config)
		left := len(w.find(w.config, ownerreference.ServedVersions))
		cancel(nil)
		if err == nil && left == 0 {
			break
		}
		if kill > dependents+1 {
			t.Fatalf("run %d: %d dependents are left: %v", kill, left, err)
		}
	}
	for i := range dependents {
		d := w.readDependent(fmt.Sprintf("d-%d", i))
		if d.OwnerReferences[0].APIVersion != w.group+"/v2" {
			t.Errorf("%s names %s", d.Name, d.OwnerReferences[0].APIVersion)
		}
		if pair, err := w.plane.Etcd().Get(t.Context(), "/registry/configmaps/default/"+d.Name); err != nil || pair.Kvs[0].Version != 2 {
			t.Errorf("%s was written %v times (%v), want its creation and one repair", d.Name, pair.Kvs[0].Version, err)
		}
	}
}

// testPermissionsOfARepair: a missing permission is a failure that names the object. The admission plugin of OpenShift also needs
// the permission to delete the dependent, and none on the owner.
func testPermissionsOfARepair(t *testing.T, plane *controlplane.ControlPlane) {
	w := newWidgets(t, plane)
	w.flip()
	w.create(w.config, "v2", "owner")
	w.setVersions(version("v1", false, false), version("v2", true, true))
	w.dependent("dependent", w.reference("v1", "owner"))
	name, config := w.user(readCRD, permission{"list", w.group, w.plural}, permission{"list", "", "configmaps"})

	failed := func(reason string) {
		t.Helper()
		report, err := w.repair(t.Context(), config)
		if err != nil || report.Counts.Failed != 1 || len(report.Failures) != 1 || report.Failures[0].Reason != decision.ReasonForbidden ||
			!strings.Contains(report.Failures[0].Message, "configmaps default/"+w.nameOf("dependent")) {
			t.Errorf("%s: %+v, %v", reason, report, err)
		}
	}
	failed("without the permission to patch")
	w.grant(config, name, permission{"patch", "", "configmaps"})
	failed("without the permission to delete, which the plugin needs")
	w.grant(config, name, permission{"delete", "", "configmaps"})
	if report, err := w.repair(t.Context(), config); err != nil || report.Counts.Migrated != 1 {
		t.Errorf("with both: %+v, %v", report, err)
	}
}

var errRepairKilled = errors.New("killed")

// gadget makes a dependent of another CRD, whose storage version keeps fields that the version of discovery does not have.
func (w *widgets) gadget(reference metav1.OwnerReference) *widgets {
	w.t.Helper()
	g := &widgets{t: w.t, plane: w.plane, group: groupOf(w.t), plural: "gadgets", kind: "Gadget"}
	g.install()
	narrow := version("v2", true, false)
	narrow.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object"}
	g.setVersions(version("v1", true, true), narrow)
	o := g.object("v1", "gadget")
	o.SetOwnerReferences([]metav1.OwnerReference{reference})
	if _, err := g.at("v1").Create(w.t.Context(), o, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	await(g.t, "discovery prefers v2", func() bool {
		_, err := g.at("v2").List(g.t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return g
}

func (w *widgets) mustKeepFields(g *widgets) {
	w.t.Helper()
	o, err := g.at("v1").Get(w.t.Context(), "gadget", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	color, _, _ := unstructured.NestedString(o.Object, "spec", "color")
	if color != "blue" || o.GetOwnerReferences()[0].APIVersion != w.group+"/v2" {
		w.t.Errorf("a custom resource was not repaired at its storage version: color %q, %v", color, o.GetOwnerReferences())
	}
}

// dependents are ConfigMaps, whose names end in the group of the test.
func (w *widgets) dependents() corev1client.ConfigMapInterface {
	return w.admission().CoreV1().ConfigMaps(metav1.NamespaceDefault)
}

func (w *widgets) nameOf(dependent string) string { return dependent + "." + w.group }

// reference is to an owner, at a version.
func (w *widgets) reference(version, owner string) metav1.OwnerReference {
	w.t.Helper()
	o, err := w.at("v2").Get(w.t.Context(), owner, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	block := true
	return metav1.OwnerReference{APIVersion: w.group + "/" + version, Kind: w.kind, Name: owner, UID: o.GetUID(), BlockOwnerDeletion: &block}
}

func (w *widgets) dependent(name string, references ...metav1.OwnerReference) {
	w.t.Helper()
	_, err := w.dependents().Create(w.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: w.nameOf(name), OwnerReferences: references}, Data: map[string]string{"of": name},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *widgets) readDependent(name string) *corev1.ConfigMap {
	w.t.Helper()
	c, err := w.dependents().Get(w.t.Context(), w.nameOf(name), metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *widgets) patchDependent(name, path string, value any) {
	w.t.Helper()
	body, err := json.Marshal([]map[string]any{{"op": "replace", "path": path, "value": value}})
	if err == nil {
		_, err = w.dependents().Patch(w.t.Context(), w.nameOf(name), types.JSONPatchType, body, metav1.PatchOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *widgets) deleteDependent(name string) {
	w.t.Helper()
	if err := w.dependents().Delete(w.t.Context(), w.nameOf(name), metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *widgets) deleteOwner(name string, how metav1.DeletionPropagation) {
	w.t.Helper()
	if err := w.at("v2").Delete(w.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *widgets) awaitNoDependent(what, name string) {
	w.t.Helper()
	await(w.t, what, func() bool {
		_, err := w.dependents().Get(w.t.Context(), w.nameOf(name), metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func (w *widgets) awaitNotServed(version string) {
	w.t.Helper()
	await(w.t, version+" is not served", func() bool {
		_, err := w.at(version).List(w.t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	})
}

func (w *widgets) owners(scope ownerreference.Scope) ownerreference.Owners {
	return ownerreference.OwnersOf(w.crd(), scope)
}

func (w *widgets) scanner(config *rest.Config) *ownerreference.Scanner {
	w.t.Helper()
	s, err := ownerreference.NewScanner(config, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// find scans the cluster for dependents of the test.
func (w *widgets) find(config *rest.Config, scope ownerreference.Scope) []*ownerreference.Dependent {
	w.t.Helper()
	finder := ownerreference.NewFinder([]ownerreference.Owners{w.owners(scope)})
	if _, err := w.scanner(config).Each(w.t.Context(), finder.Visit, nil); err != nil {
		w.t.Fatal(err)
	}
	return finder.Found[w.name]
}

func (w *widgets) repairer(config *rest.Config) *ownerreference.Repairer {
	w.t.Helper()
	s, o := w.scanner(config), w.owners(ownerreference.ServedVersions)
	existing, why, err := s.ReadOwners(w.t.Context(), o)
	if why != nil || err != nil {
		w.t.Fatal(why, err)
	}
	return &ownerreference.Repairer{Scanner: s, Owners: o, Existing: existing}
}

// repair scans and repairs, as a run does.
func (w *widgets) repair(ctx context.Context, config *rest.Config) (walk.Report, error) {
	w.t.Helper()
	return w.repairer(config).Run(ctx, w.find(config, ownerreference.ServedVersions), nil)
}

func (w *widgets) mustRepair(config *rest.Config) walk.Report {
	w.t.Helper()
	report, err := w.repair(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// names are those of dependents, without the group of the test.
func (w *widgets) names(dependents []*ownerreference.Dependent) []string {
	var names []string
	for _, d := range dependents {
		names = append(names, strings.TrimSuffix(d.Name, "."+w.group))
	}
	slices.Sort(names)
	return names
}
