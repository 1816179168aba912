package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	kubevirtcluster "github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestTriggerHasEveryRevisionUpgraded: a trigger with an empty spec finds the virtual machines' revisions in every form. A manager
// with the permissions of its role upgrades them, and the trigger counts them.
func TestTriggerHasEveryRevisionUpgraded(t *testing.T) {
	c := newVirtualization(t)
	want := v1alpha1.RevisionCounts{}
	for _, f := range fixture.All() {
		c.machine(f)
		want.Discovered++
		switch {
		case f.Version != "v1beta1":
			want.Succeeded++
		case f.Labelled:
			want.UpToDate++
		default:
			want.Relabelled++
		}
	}
	c.upgrade()
	trigger := c.trigger("all", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(trigger, revisionupgrade.ReasonSourcesRetained.Name)
	c.mustCount(trigger, want)
	c.mustHaveKstatus(trigger, status.CurrentStatus)
	if s := trigger.Status; len(s.DroppableVersions) > 0 || s.CompletionTime != nil {
		t.Errorf("with all sources there, droppable are %v, complete since %v", s.DroppableVersions, s.CompletionTime)
	}
	retained := int64(0)
	for _, u := range c.upgrades() {
		if revision.Phase(u.Status.Phase) == revision.Retained {
			retained++
		}
		c.mustHaveKstatus(&u, status.CurrentStatus)
	}
	if retained != want.Succeeded {
		t.Errorf("%d sources are retained, want %d", retained, want.Succeeded)
	}
	c.outlastRetention()
	c.awaitTrigger(trigger, revisionupgrade.ReasonSucceeded.Name)
	c.mustCount(trigger, want)
	if got := trigger.Status.DroppableVersions; !slices.Equal(got, []string{"v1alpha1", "v1alpha2"}) {
		t.Errorf("droppable are %v: %+v", got, trigger.Status.Conditions)
	}
}

// TestTriggerThatOnlyVerifies: a trigger with dryRun counts and creates nothing. One that verifies is done when no old
// revision is left, and Stalled before.
func TestTriggerThatOnlyVerifies(t *testing.T) {
	c := newVirtualization(t)
	old, runs := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled"), fixture.Find("F2/VirtualMachinePreference/labelled")
	names := map[string]string{old.VM: c.machine(old), runs.VM: c.machine(runs, fixture.Running)}
	c.upgrade()
	found := v1alpha1.RevisionCounts{Discovered: 2, Pending: 1, Deferred: 1}

	dryRun := c.trigger("dry-run", v1alpha1.ControllerRevisionUpgradeTriggerSpec{Mode: v1alpha1.ModeDryRun})
	c.awaitTrigger(dryRun, revisionupgrade.ReasonNotUpgraded.Name)
	c.mustCount(dryRun, found)
	c.mustHaveKstatus(dryRun, status.CurrentStatus)
	verify := c.trigger("verify", v1alpha1.ControllerRevisionUpgradeTriggerSpec{Mode: v1alpha1.ModeVerify})
	c.awaitTrigger(verify, revisionupgrade.ReasonNotUpgraded.Name)
	c.mustCount(verify, found)
	c.mustHaveKstatus(verify, status.FailedStatus)
	if made := c.upgrades(); len(made) > 0 {
		t.Errorf("upgrades were made: %v", made)
	}
	for _, f := range []fixture.Fixture{old, runs} {
		if got := c.revisionName(f); got != names[f.VM] {
			t.Errorf("%s refers to %s, want %s", f.VM, got, names[f.VM])
		}
	}

	upgrade := c.trigger("upgrade", v1alpha1.ControllerRevisionUpgradeTriggerSpec{OnRunning: v1alpha1.OnRunningHold})
	c.awaitTrigger(upgrade, revisionupgrade.ReasonSourcesRetained.Name)
	again := c.trigger("verify-again", v1alpha1.ControllerRevisionUpgradeTriggerSpec{Mode: v1alpha1.ModeVerify})
	c.awaitTrigger(again, revisionupgrade.ReasonSucceeded.Name)
	c.mustCount(again, v1alpha1.RevisionCounts{Discovered: 2, UpToDate: 2})
}

// TestSuspendedTriggerStopsItsUpgrades: a suspended trigger creates no upgrade, stops those that it created, and resumes them.
func TestSuspendedTriggerStopsItsUpgrades(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	old := c.machine(f, fixture.Running)
	trigger := c.trigger("later", v1alpha1.ControllerRevisionUpgradeTriggerSpec{Suspend: true})
	c.mustHaveKstatus(trigger, status.InProgressStatus) // no manager has observed it
	c.upgrade()
	c.awaitTrigger(trigger, revisionupgrade.ReasonSuspended.Name)
	if made := c.upgrades(); len(made) > 0 {
		t.Errorf("something was made while suspended: %v", made)
	}
	c.merge(trigger, `{"spec":{"suspend":false}}`)
	c.awaitTrigger(trigger, revisionupgrade.ReasonUpgrading.Name)
	c.awaitDeferred()
	c.merge(trigger, `{"spec":{"suspend":true}}`)
	c.awaitTrigger(trigger, revisionupgrade.ReasonSuspended.Name)

	c.stop(f)
	bystander := c.upgradeByName("bystander", c.machine(fixture.Find("F2/VirtualMachinePreference/labelled")))
	c.awaitUpgrade(bystander, revision.Retained) // so that the namespace has been scanned
	if got := c.revisionName(f); got != old {
		t.Errorf("suspended, and %s refers to %s", f.VM, got)
	}
	c.merge(trigger, `{"spec":{"suspend":false}}`)
	c.awaitTrigger(trigger, revisionupgrade.ReasonSourcesRetained.Name)
	if got := c.revisionName(f); got == old {
		t.Errorf("%s still refers to %s", f.VM, got)
	}
}

// TestContinuousTriggerFindsLaterRevisions: a trigger that runs once has completed by then.
func TestContinuousTriggerFindsLaterRevisions(t *testing.T) {
	c := newVirtualization(t)
	c.upgrade()
	once := c.trigger("once", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(once, revisionupgrade.ReasonSucceeded.Name)
	always := c.trigger("always", v1alpha1.ControllerRevisionUpgradeTriggerSpec{Run: v1alpha1.RunContinuous})
	c.awaitTrigger(always, revisionupgrade.ReasonSucceeded.Name)
	f := fixture.Find("F2/VirtualMachinePreference/labelled")
	old := c.machine(f)
	c.hoursLater(once)
	c.hoursLater(always)
	c.await("the revision that came late to be upgraded", func() bool { return c.revisionName(f) != old })
	c.await("the trigger to count it", func() bool {
		c.awaitTrigger(always, revisionupgrade.ReasonSourcesRetained.Name)
		return always.Status.Counts.Succeeded == 1
	})
	c.awaitTrigger(once, revisionupgrade.ReasonSucceeded.Name)
	c.mustCount(once, v1alpha1.RevisionCounts{})
}

// TestTriggerIsDeletedAfterItsTTL, with its upgrades, and not before the last source is deleted.
func TestTriggerIsDeletedAfterItsTTL(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F2/VirtualMachinePreference/labelled")
	old := c.machine(f)
	trigger := c.trigger("short", v1alpha1.ControllerRevisionUpgradeTriggerSpec{TTLSecondsAfterFinished: new(int32(1))})
	c.upgrade()
	c.awaitTrigger(trigger, revisionupgrade.ReasonSourcesRetained.Name)
	c.outlastRetention()
	c.await("the trigger to be gone", func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(trigger), trigger))
	})
	if got := c.revisionName(f); got == old {
		t.Errorf("the trigger is gone, and %s still refers to %s", f.VM, got)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: old}, &appsv1.ControllerRevision{}); !apierrors.IsNotFound(err) {
		t.Errorf("the trigger is gone, and the source is not: %v", err)
	}
}

// TestTriggerReportsABrokenReference: a reference to a missing revision needs user action. After it the trigger completes.
func TestTriggerReportsABrokenReference(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F2/VirtualMachinePreference/labelled")
	vm, err := kubevirtcluster.Create(t.Context(), c.objects, fixture.VirtualMachine(c.namespace, f.VM, fixture.InSpec|fixture.InStatus, f))
	if err != nil {
		t.Fatal(err)
	}
	c.upgrade()
	trigger := c.trigger("broken", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(trigger, revisionupgrade.ReasonUpgradesFailed.Name)
	c.mustHaveKstatus(trigger, status.FailedStatus)
	r := f.Revision(vm)
	if fs := trigger.Status.Failures; len(fs) != 1 || fs[0].Name != r.Name || fs[0].Reason != decision.ReasonSourceGone.Name {
		t.Errorf("failures %+v", fs)
	}
	if err := c.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	c.nudge()
	c.awaitTrigger(trigger, revisionupgrade.ReasonSourcesRetained.Name)
	if got := c.revisionName(f); got == r.Name {
		t.Errorf("%s still refers to %s", f.VM, got)
	}
}

// TestTriggerWaitsForUpgradesOfOthers: a revision has one upgrade, and a second trigger does not complete before it has ended.
func TestTriggerWaitsForUpgradesOfOthers(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	c.machine(f, fixture.Running)
	c.upgrade()
	first := c.trigger("first", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitDeferred()
	second := c.trigger("second", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(second, revisionupgrade.ReasonUpgrading.Name)
	c.mustCount(second, v1alpha1.RevisionCounts{Discovered: 1, Deferred: 1})
	c.stop(f)
	c.nudge()
	c.awaitTrigger(first, revisionupgrade.ReasonSourcesRetained.Name)
	c.hoursLater(second)
	c.awaitTrigger(second, revisionupgrade.ReasonSourcesRetained.Name)
	c.outlastRetention()
	c.awaitTrigger(first, revisionupgrade.ReasonSucceeded.Name)
	c.hoursLater(second)
	c.awaitTrigger(second, revisionupgrade.ReasonSucceeded.Name)
}

// TestOldNameThatComesBack: GitOps sets the old name again. The reference is repointed to the replacement each time, though the
// upgrade has ended.
func TestOldNameThatComesBack(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	old := c.machine(f)
	c.upgrade()
	trigger := c.trigger("always", v1alpha1.ControllerRevisionUpgradeTriggerSpec{Run: v1alpha1.RunContinuous})
	c.awaitTrigger(trigger, revisionupgrade.ReasonSourcesRetained.Name)
	replacement := c.revisionName(f)
	c.outlastRetention()
	c.awaitTrigger(trigger, revisionupgrade.ReasonSucceeded.Name)
	for range 2 {
		c.merge(c.virtualMachine(f), fmt.Sprintf(`{"spec":{"instancetype":{"revisionName":%q}}}`, old))
		c.await("the reference to name the replacement", func() bool {
			c.hoursLater(trigger)
			c.awaitTrigger(trigger, revisionupgrade.ReasonSucceeded.Name)
			return c.revisionName(f) == replacement
		})
	}
}

// TestDeletedTriggerStartsNothing: the upgrades of a suspended trigger stay as they are while they wait for the garbage collector.
func TestDeletedTriggerStartsNothing(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	old := c.machine(f, fixture.Running)
	c.upgrade()
	trigger := c.trigger("gone", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitDeferred()
	c.merge(trigger, `{"spec":{"suspend":true}}`)
	c.awaitTrigger(trigger, revisionupgrade.ReasonSuspended.Name)
	c.stop(f)
	if err := c.Delete(t.Context(), trigger); err != nil {
		t.Fatal(err)
	}
	c.nudge()
	bystander := c.upgradeByName("bystander", c.machine(fixture.Find("F2/VirtualMachinePreference/labelled")))
	c.awaitUpgrade(bystander, revision.Retained) // so that the namespace has been scanned
	if got := c.revisionName(f); got != old {
		t.Errorf("the trigger is gone, and %s refers to %s", f.VM, got)
	}
}

// TestUpgradeByName: a name is enough. It waits while it is suspended, can be rolled
// back, and says what is wrong with a name.
func TestUpgradeByName(t *testing.T) {
	c := newVirtualization(t)
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	old := c.machine(f)
	upgrade, misspelt := c.upgradeByName("by-name", old), c.upgradeByName("misspelt", "old-"+old)
	c.merge(upgrade, `{"spec":{"suspend":true}}`)
	c.mustHaveKstatus(upgrade, status.InProgressStatus)
	c.upgrade()
	c.awaitUpgrade(misspelt, revision.Failed)
	c.mustHaveKstatus(misspelt, status.FailedStatus)
	if ready := meta.FindStatusCondition(misspelt.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(ready.Message, misspelt.Spec.TargetName) {
		t.Errorf("the refusal of an unknown name: %+v", ready)
	}
	if got := c.revisionName(f); got != old {
		t.Errorf("suspended, and %s refers to %s", f.VM, got)
	}
	c.merge(upgrade, `{"spec":{"suspend":false}}`)
	c.awaitUpgrade(upgrade, revision.Retained)
	if got := c.revisionName(f); upgrade.Status.Replacement == nil || got != upgrade.Status.Replacement.Name || got == old {
		t.Errorf("%s refers to %s, the result is %+v", f.VM, got, upgrade.Status.Replacement)
	}
	c.merge(upgrade, `{"spec":{"rollback":true}}`)
	c.awaitUpgrade(upgrade, revision.RolledBack)
	c.mustHaveKstatus(upgrade, status.CurrentStatus)
	if got := c.revisionName(f); got != old {
		t.Errorf("rolled back, and %s refers to %s, want %s", f.VM, got, old)
	}
}

// TestSubjectIsImmutable: the API server refuses to change what an upgrade or a trigger was created for.
func TestSubjectIsImmutable(t *testing.T) {
	c := newVirtualization(t)
	trigger := c.trigger("fixed", v1alpha1.ControllerRevisionUpgradeTriggerSpec{Mode: v1alpha1.ModeDryRun})
	upgrade := c.upgradeByName("fixed", "any")
	const ofTrigger, ofUpgrade = "only suspend, onRunning and lossPolicy can be changed", "only suspend, rollback, onRunning and lossPolicy can be changed"
	for patch, test := range map[string]struct {
		of   client.Object
		says string // empty: it is fine
	}{
		`{"spec":{"suspend":true}}`:                                     {of: trigger},
		`{"spec":{"onRunning":"Hold","lossPolicy":"Allow"}}`:            {of: trigger},
		`{"spec":{"lossPolicy":"Allow","onRunning":"Hold"}}`:            {of: upgrade},
		`{"spec":{"onRunning":"Never"}}`:                                {trigger, "Unsupported value"},
		`{"spec":{"mode":"Upgrade"}}`:                                   {trigger, ofTrigger},
		`{"spec":null}`:                                                 {trigger, ofTrigger},
		`{"spec":{"mode":null}}`:                                        {trigger, ofTrigger},
		`{"spec":{"namespace":"other"}}`:                                {trigger, ofTrigger},
		`{"spec":{"labelSelector":{"matchLabels":{"a":"b"}}}}`:          {trigger, ofTrigger},
		`{"spec":{"targetVersion":"v1beta1"}}`:                          {trigger, ofTrigger},
		`{"spec":{"maxConcurrent":3}}`:                                  {trigger, ofTrigger},
		`{"spec":{"run":"Continuous"}}`:                                 {trigger, ofTrigger},
		`{"spec":{"retention":{"ttl":"2h"}}}`:                           {trigger, ofTrigger},
		`{"spec":{"ttlSecondsAfterFinished":5}}`:                        {trigger, ofTrigger},
		`{"spec":{"suspend":true,"rollback":true}}`:                     {of: upgrade},
		`{"spec":{"targetName":"other"}}`:                               {upgrade, ofUpgrade},
		`{"spec":{"targetUID":"5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102"}}`: {upgrade, ofUpgrade},
		`{"spec":{"family":"KubeVirtInstancetype"}}`:                    {upgrade, ofUpgrade},
		`{"spec":{"retention":{"policy":"Retain","ttl":"20m"}}}`:        {upgrade, ofUpgrade},
	} {
		o, _ := test.of.DeepCopyObject().(client.Object)
		err := c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		if test.says == "" && err != nil || test.says != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s of %s: %v, want a refusal that says %q", patch, o.GetName(), err, test.says)
		}
	}
	short := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: objectMeta(c.namespace + "-short")}
	short.Spec.Retention = &v1alpha1.Retention{TTL: &metav1.Duration{Duration: time.Minute}}
	if err := c.Create(t.Context(), short, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "at least 10m") {
		t.Errorf("a retention of a minute: %v", err)
	}
}

// TestTriggerIsNotDoneWhileTheCacheIsBehind: the cache does not have the upgrades yet that the trigger created.
func TestTriggerIsNotDoneWhileTheCacheIsBehind(t *testing.T) {
	c := newVirtualization(t)
	c.machine(fixture.Find("F2/VirtualMachinePreference/labelled"))
	trigger := c.trigger("hasty", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	server, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	behind := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("controllerrevisionupgrades").GroupResource(), key.Name)
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	upgrader, err := revision.New(plane.Config(), kubevirt.Family{}, revision.Options{})
	if err != nil {
		t.Fatal(err)
	}
	triggers := &revisionupgrade.Triggers{Client: behind, Reader: server, Recorder: events.NewFakeRecorder(10), Upgrader: upgrader, Clock: clock.RealClock{}}
	for i, cache := range []client.Client{behind, behind, server} {
		triggers.Client = cache
		result, err := triggers.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(trigger)})
		if err != nil {
			t.Fatal(err)
		}
		c.awaitTrigger(trigger, revisionupgrade.ReasonUpgrading.Name)
		if trigger.Status.CompletionTime != nil || i < 2 && result.RequeueAfter == 0 {
			t.Errorf("the trigger completed, or has no next pass: %+v, %+v", result, trigger.Status)
		}
	}
	c.mustCount(trigger, v1alpha1.RevisionCounts{Discovered: 1, Pending: 1})
}
