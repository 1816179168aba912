package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
	kubevirtcluster "github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/stash"
)

// TestTriggerHasEveryRevisionUpgraded: a trigger that says nothing finds the
// machines' stashes in every form, has them upgraded by a manager with the rights
// that are its own, and says what it did.
func TestTriggerHasEveryRevisionUpgraded(t *testing.T) {
	c := newCluster(t)
	if err := kubevirtcluster.Install(t.Context(), plane.Config()); err != nil {
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
	old := 0
	for _, f := range stash.All() {
		vm, err := kubevirtcluster.Create(t.Context(), objects, stash.VirtualMachine(machines.Name, f.VM, stash.InSpec|stash.InStatus, f))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), f.Revision(vm)); err != nil {
			t.Fatal(err)
		}
		if f.Version != "v1beta1" { // the others are relabelled, if anything
			old++
		}
	}

	_, user := c.serviceAccountOf(RevisionUpgrader, func(rbacv1.PolicyRule) bool { return false })
	c.manageAs(user, "", EnableVariable+"=false", EnableRevisionUpgrader+"=true")
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: objectMeta("all")}
	if err := c.Create(t.Context(), trigger); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("status: %+v", trigger.Status)
		}
	})
	c.await("the trigger to be Ready", func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(trigger), trigger); err != nil {
			t.Fatal(err)
		}
		return meta.IsStatusConditionTrue(trigger.Status.Conditions, v1alpha1.ConditionReady)
	})
	if n := trigger.Status.Counts; n == nil || n.Discovered != int64(len(stash.All())) || n.Failed+n.Blocked+n.Pending != 0 {
		t.Errorf("counts %+v, failures %+v", n, trigger.Status.Failures)
	}
	upgrades := &v1alpha1.ControllerRevisionUpgradeList{}
	if err := c.List(t.Context(), upgrades, client.InNamespace(machines.Name)); err != nil {
		t.Fatal(err)
	}
	retained := 0
	for _, u := range upgrades.Items {
		if revision.Phase(u.Status.Phase) == revision.Retained {
			retained++
		}
		if !meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionReady) {
			t.Errorf("%s is %s: %+v", u.Name, u.Status.Phase, u.Status.Conditions)
		}
	}
	if retained != old {
		t.Errorf("%d sources are retained, want %d", retained, old)
	}
}
