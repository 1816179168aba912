package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestTriggerReportsFirstWhatItFound: the creation of thousands of upgrades takes minutes. The status has the counts and the
// condition Reconciling before the first one is created. After a manager that ended in between, the next one creates the others.
func TestTriggerReportsFirstWhatItFound(t *testing.T) {
	c := newVirtualization(t)
	c.machine(fixture.Find("F2/VirtualMachinePreference/labelled"))
	c.machine(fixture.Find("F1/VirtualMachineClusterInstancetype/labelled"))
	trigger := c.trigger("told", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	server, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	made, told := 0, &v1alpha1.ControllerRevisionUpgradeTrigger{}
	dies := interceptor.NewClient(server, interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if made++; made == 1 {
				return errors.Join(to.Get(ctx, client.ObjectKeyFromObject(trigger), told), to.Create(ctx, o, opts...))
			}
			return context.Canceled
		},
	})
	upgrader, err := revision.New(plane.Config(), kubevirt.Family{}, revision.Options{})
	if err != nil {
		t.Fatal(err)
	}
	triggers := &revisionupgrade.Triggers{Client: dies, Reader: server, Recorder: events.NewFakeRecorder(10), Upgrader: upgrader, Clock: clock.RealClock{}}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(trigger)}
	if _, err := triggers.Reconcile(t.Context(), request); err == nil {
		t.Error("the second upgrade can't be created, and the pass returns no error")
	}
	if diff := cmp.Diff(&v1alpha1.RevisionCounts{Discovered: 2, Pending: 2}, told.Status.Counts); diff != "" {
		t.Errorf("counts before the first upgrade is created (-want +got):\n%s", diff)
	}
	for _, want := range []string{v1alpha1.ConditionDiscovered, v1alpha1.ConditionReconciling} {
		if !meta.IsStatusConditionTrue(told.Status.Conditions, want) {
			t.Errorf("before the first upgrade is created it is not %s: %+v", want, told.Status.Conditions)
		}
	}
	if told.Status.LastScanTime != nil {
		t.Error("the scan has a time, and no upgrade is created")
	}
	triggers.Client = server
	for range 2 {
		if _, err := triggers.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	c.awaitTrigger(trigger, revisionupgrade.ReasonUpgrading.Name)
	c.mustCount(trigger, v1alpha1.RevisionCounts{Discovered: 2, Pending: 2})
	if n := len(c.upgrades()); n != 2 || trigger.Status.LastScanTime == nil {
		t.Errorf("%d upgrades are created, want 2: %+v", n, trigger.Status)
	}
}

// TestRefusedWriteStalls: the API server refuses the new revision, and would refuse it again. The upgrade and its trigger quote the
// API server, and resume when the cause is removed.
func TestRefusedWriteStalls(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	old := c.machine(f)
	quota := c.full()
	c.upgrade()
	trigger := c.trigger("refused", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(trigger, revisionupgrade.ReasonUpgradesFailed.Name)
	c.mustHaveKstatus(trigger, status.FailedStatus)
	upgrade := c.upgrades()[0]
	c.awaitUpgrade(&upgrade, revision.Failed)
	c.mustHaveKstatus(&upgrade, status.FailedStatus)
	stalled := meta.FindStatusCondition(upgrade.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled.Reason != decision.ReasonRefused.Name || !strings.Contains(stalled.Message, "exceeded quota: full") {
		t.Errorf("%s: %s", stalled.Reason, stalled.Message)
	}
	if fs := trigger.Status.Failures; len(fs) != 1 || fs[0].Name != old || fs[0].Reason != decision.ReasonRefused.Name || !strings.Contains(fs[0].Message, "exceeded quota: full") {
		t.Errorf("failures %+v", fs)
	}
	if err := c.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c.await("the quota to hold no longer", func() bool { return c.dryRunRevision() == nil })
	c.nudge()
	c.awaitTrigger(trigger, revisionupgrade.ReasonSourcesRetained.Name)
	if got := c.revisionName(f); got == old {
		t.Errorf("%s still refers to %s", f.VM, got)
	}
}

// full is a quota of the namespace that takes no more revisions.
func (c *virtualization) full() *corev1.ResourceQuota {
	c.t.Helper()
	used := corev1.ResourceList{"count/controllerrevisions.apps": resource.MustParse("1")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "full"}, Spec: corev1.ResourceQuotaSpec{Hard: used}}
	if err := c.Create(c.t.Context(), quota); err != nil {
		c.t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: used, Used: used}
	if err := c.Status().Update(c.t.Context(), quota); err != nil {
		c.t.Fatal(err)
	}
	c.await("the quota to hold", func() bool { return apierrors.IsForbidden(c.dryRunRevision()) })
	return quota
}

func (c *virtualization) dryRunRevision() error {
	one := fixture.Find("F2/VirtualMachinePreference/labelled").Revision(c.virtualMachine(fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")))
	return c.Create(c.t.Context(), one, client.DryRunAll)
}
