package operator

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	kubevirtcluster "github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// virtualization is a namespace of a cluster with KubeVirt's CRDs.
type virtualization struct {
	*cluster
	objects   dynamic.Interface
	namespace string
}

// installKubeVirt installs the CRDs on the shared control plane. They stay after the test.
var installKubeVirt = sync.OnceValue(func() error { return kubevirtcluster.Install(context.Background(), plane.Config()) })

func newVirtualization(t *testing.T) *virtualization {
	t.Helper()
	c := newCluster(t)
	if err := installKubeVirt(); err != nil {
		t.Fatal(err)
	}
	machines := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "machines-"}}
	if err := c.Create(t.Context(), machines); err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	v := &virtualization{cluster: c, objects: objects, namespace: machines.Name}
	t.Cleanup(v.clear)
	return v
}

// clear deletes all objects that would use a version in the next test.
func (c *virtualization) clear() {
	ctx := context.Background() // the test's own has ended
	machines := &unstructured.Unstructured{}
	machines.SetAPIVersion("kubevirt.io/v1")
	machines.SetKind("VirtualMachine")
	for _, o := range []client.Object{&v1alpha1.ControllerRevisionUpgrade{}, machines, &appsv1.ControllerRevision{}} {
		if err := c.DeleteAllOf(ctx, o, client.InNamespace(c.namespace)); err != nil {
			c.t.Error(err)
		}
	}
}

// upgrade starts a manager that upgrades revisions, with the rights that are its own.
func (c *virtualization) upgrade() *process {
	c.t.Helper()
	_, user := c.serviceAccountOf(RevisionUpgrader, func(rbacv1.PolicyRule) bool { return false })
	return c.manageAs(user, "", EnableVariable+"=false", EnableRevisionUpgrader+"=true")
}

// machine creates a virtual machine with the revision that it refers to in its spec
// and status.
func (c *virtualization) machine(f fixture.Fixture, change ...func(*unstructured.Unstructured) *unstructured.Unstructured) (revision string) {
	c.t.Helper()
	want := fixture.VirtualMachine(c.namespace, f.VM, fixture.InSpec|fixture.InStatus, f)
	for _, change := range change {
		want = change(want)
	}
	vm, err := kubevirtcluster.Create(c.t.Context(), c.objects, want)
	if err != nil {
		c.t.Fatal(err)
	}
	r := f.Revision(vm)
	if err := c.Create(c.t.Context(), r); err != nil {
		c.t.Fatal(err)
	}
	return r.Name
}

// revisionName is the revision that a virtual machine's spec names.
func (c *virtualization) revisionName(f fixture.Fixture) string {
	c.t.Helper()
	vm := c.virtualMachine(f)
	field := "instancetype"
	if f.Preference() {
		field = "preference"
	}
	name, _, err := unstructured.NestedString(vm.Object, "spec", field, "revisionName")
	if err != nil {
		c.t.Fatal(err)
	}
	return name
}

func (c *virtualization) virtualMachine(f fixture.Fixture) *unstructured.Unstructured {
	c.t.Helper()
	vm := fixture.VirtualMachine(c.namespace, f.VM, fixture.InSpec)
	if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil {
		c.t.Fatal(err)
	}
	return vm
}

// stop writes what KubeVirt writes of a machine that has stopped.
func (c *virtualization) stop(f fixture.Fixture) {
	c.t.Helper()
	stopped := client.RawPatch(types.MergePatchType, []byte(`{"status":{"printableStatus":"Stopped","created":false,"ready":false}}`))
	if err := c.Status().Patch(c.t.Context(), c.virtualMachine(f), stopped); err != nil {
		c.t.Fatal(err)
	}
}

// trigger makes a trigger that looks in the test's own namespace.
func (c *virtualization) trigger(name string, spec v1alpha1.ControllerRevisionUpgradeTriggerSpec) *v1alpha1.ControllerRevisionUpgradeTrigger {
	c.t.Helper()
	spec.Namespace = c.namespace
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: objectMeta(c.namespace + "-" + name), Spec: spec}
	if err := c.Create(c.t.Context(), trigger); err != nil {
		c.t.Fatal(err)
	}
	return trigger
}

// awaitTrigger waits until the trigger's Ready has a reason.
func (c *virtualization) awaitTrigger(trigger *v1alpha1.ControllerRevisionUpgradeTrigger, reason string) {
	c.t.Helper()
	defer func() {
		if c.t.Failed() {
			c.t.Logf("status of %s: counts %+v, %+v", trigger.Name, trigger.Status.Counts, trigger.Status)
		}
	}()
	c.await("trigger "+trigger.Name+" to be "+reason, func() bool {
		if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(trigger), trigger); err != nil {
			c.t.Fatal(err)
		}
		ready := meta.FindStatusCondition(trigger.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == reason && ready.ObservedGeneration == trigger.Generation
	})
}

func (c *virtualization) mustCount(trigger *v1alpha1.ControllerRevisionUpgradeTrigger, want v1alpha1.RevisionCounts) {
	c.t.Helper()
	if got := trigger.Status.Counts; got == nil || *got != want {
		c.t.Errorf("trigger %s counts %+v, want %+v", trigger.Name, got, want)
	}
}

// upgradeByName asks for the upgrade of a revision.
func (c *virtualization) upgradeByName(name, revision string) *v1alpha1.ControllerRevisionUpgrade {
	c.t.Helper()
	upgrade := &v1alpha1.ControllerRevisionUpgrade{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec:       v1alpha1.ControllerRevisionUpgradeSpec{TargetName: revision},
	}
	if err := c.Create(c.t.Context(), upgrade); err != nil {
		c.t.Fatal(err)
	}
	return upgrade
}

// upgrades of the test's namespace.
func (c *virtualization) upgrades() []v1alpha1.ControllerRevisionUpgrade {
	c.t.Helper()
	list := &v1alpha1.ControllerRevisionUpgradeList{}
	if err := c.List(c.t.Context(), list, client.InNamespace(c.namespace)); err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// awaitUpgrade waits until an upgrade is in a phase.
func (c *virtualization) awaitUpgrade(upgrade *v1alpha1.ControllerRevisionUpgrade, phase revision.Phase) {
	c.t.Helper()
	defer func() {
		if c.t.Failed() {
			c.t.Logf("status of %s: %+v", upgrade.Name, upgrade.Status)
		}
	}()
	c.await("upgrade "+upgrade.Name+" to be "+string(phase), func() bool {
		if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(upgrade), upgrade); err != nil {
			c.t.Fatal(err)
		}
		return revision.Phase(upgrade.Status.Phase) == phase && upgrade.Status.ObservedGeneration == upgrade.Generation
	})
}

// awaitDeferred waits until the one upgrade that a trigger made waits for its machine.
func (c *virtualization) awaitDeferred() {
	c.t.Helper()
	c.await("the upgrade to be deferred", func() bool {
		made := c.upgrades()
		return len(made) == 1 && revision.Phase(made[0].Status.Phase) == revision.Converted
	})
}

func (c *virtualization) merge(o client.Object, patch string) {
	c.t.Helper()
	if err := c.Patch(c.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.t.Fatal(err)
	}
}

// outlastRetention sets the time back since which no object refers to the sources, and has the manager visit the upgrades.
func (c *virtualization) outlastRetention() {
	c.t.Helper()
	revisions := &appsv1.ControllerRevisionList{}
	if err := c.List(c.t.Context(), revisions, client.InNamespace(c.namespace)); err != nil {
		c.t.Fatal(err)
	}
	for _, r := range revisions.Items {
		if r.Annotations[decision.UnreferencedAnnotation] != "" {
			c.merge(&r, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, decision.UnreferencedAnnotation, time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339)))
		}
	}
	c.nudge()
}

// nudge has the manager visit the upgrades, which it would do minutes later.
func (c *virtualization) nudge() {
	c.t.Helper()
	for _, u := range c.upgrades() {
		c.merge(&u, `{"spec":{"suspend":true}}`)
		c.merge(&u, `{"spec":{"suspend":false}}`)
	}
}

// hoursLater sets back what a trigger noted of its last scan, and has it looked at.
func (c *virtualization) hoursLater(trigger *v1alpha1.ControllerRevisionUpgradeTrigger) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"status":{"lastScanTime":%q}}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	c.merge(trigger, `{"spec":{"suspend":true}}`)
	c.awaitTrigger(trigger, revisionupgrade.ReasonSuspended.Name)
	if err := c.Status().Patch(c.t.Context(), trigger, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.t.Fatal(err)
	}
	c.merge(trigger, `{"spec":{"suspend":false}}`)
}

func (c *virtualization) controllerRevision(name string) *appsv1.ControllerRevision {
	c.t.Helper()
	r := &appsv1.ControllerRevision{}
	if err := c.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, r); err != nil {
		c.t.Fatal(err)
	}
	return r
}
