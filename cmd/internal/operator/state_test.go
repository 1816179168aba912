package operator

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/format/formattest"
	storagedecision "github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestManagerAndOtherReleases: the checkpoint of v0.1.0 in the status of a CRDMigration has each field of the current one, and the
// manager resumes from it. A CRDMigration of a newer release is left alone, with a condition and an event, while the manager
// migrates others; it is migrated when the newer state is gone.
func TestManagerAndOtherReleases(t *testing.T) {
	frozen := formattest.Frozen(t, "checkpoint.json")
	formattest.Same[v1alpha1.Checkpoint](t, frozen, ".Values")
	c := newCluster(t)
	group := "storageVersionMigrator: {scopes: [{group: formats.example.com, labelSelector: {matchLabels: {migrate: never}}}], defaults: {settle: 0s}}"
	const objects = 5
	names := map[string]string{}
	for _, plural := range []string{"oldests", "newers", "marks"} {
		names[plural] = c.define(plural, objects, nil)
		c.flip(names[plural])
		m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: names[plural]}}
		if plural == "marks" {
			m.Annotations = map[string]string{format.Annotation: "2"}
		}
		if err := c.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	// For v0.1.0, all objects were written after the first resourceVersion, so that a manager that resumes writes none.
	crd := c.crd(names["oldests"])
	c.checkpoint(names["oldests"], strings.NewReplacer(
		"1000001", strconv.FormatInt(crd.Generation, 10), "00000000-0000-4000-8000-000000000001", string(crd.UID),
		"1000002", "1", `"cursor":"default/o-039",`, "", `"settled":"1m15s"`, `"settled":"0s"`, `"acceptedStaleLeases":true,`, "",
	).Replace(frozen))
	newer := `{"format":2,"crdUID":"u","generation":1,"storageVersion":"v2","resourceVersion":"1"}`
	c.checkpoint(names["newers"], newer)

	p := c.manage(group)
	c.awaitReason(names["oldests"], storagedecision.ReasonSucceeded.Name)
	c.mustBeStored(names["oldests"], map[string]int{"v1": objects})
	for _, plural := range []string{"newers", "marks"} {
		m := c.awaitReason(names[plural], storagedecision.ReasonBlocked.Name)
		blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
		if blocked == nil || blocked.Status != metav1.ConditionTrue || blocked.Reason != storagedecision.ReasonNewerFormat.Name ||
			!strings.Contains(blocked.Message, "crdmigration "+names[plural]+" has format") || !strings.Contains(blocked.Message, "reads format 1") {
			t.Errorf("%s: condition %+v", plural, blocked)
		}
		c.await("an event about "+names[plural], func() bool {
			list := &eventsv1.EventList{}
			return c.List(t.Context(), list) == nil && slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Name == names[plural] && e.Type == "Warning" && strings.Contains(e.Note, "a newer release wrote it")
			})
		})
		c.mustBeStored(names[plural], map[string]int{"v1": objects})
		if got := c.storedVersions(names[plural]); got != "v1,v2" {
			t.Errorf("%s: storedVersions are %s", plural, got)
		}
	}
	if m := c.migration(names["newers"]); m.Status.Checkpoint.Format != 2 {
		t.Errorf("the checkpoint is now %+v", m.Status.Checkpoint)
	}
	time.Sleep(time.Second)
	p.mustEnd() // it has not ended by itself

	c.checkpoint(names["newers"], "null")
	c.patch(names["marks"], `{"metadata":{"annotations":{"`+format.Annotation+`":null}}}`)
	c.manage(group)
	for _, plural := range []string{"newers", "marks"} {
		c.awaitReason(names[plural], storagedecision.ReasonSucceeded.Name)
		c.mustBeStored(names[plural], map[string]int{"v2": objects})
	}
}

// TestRevisionsAndOtherReleases: what a newer release has stored of an upgrade is left alone, on the upgrade, on the revision and on a
// trigger, while the manager upgrades other revisions. A trigger counts such an upgrade as one that needs user action. Each is
// upgraded when the newer state is gone, as by the newer release.
func TestRevisionsAndOtherReleases(t *testing.T) {
	c := newVirtualization(t)
	newer := map[string]string{format.Annotation: "2"}
	mark := func(o client.Object, with string) {
		t.Helper()
		c.merge(o, `{"metadata":{"annotations":{"`+format.Annotation+`":`+with+`}}}`)
	}
	machines := map[string]fixture.Fixture{
		"upgrade": fixture.Find("F1/VirtualMachineClusterInstancetype/labelled"),
		"source":  fixture.Find("F2/VirtualMachinePreference/labelled"),
		"other":   fixture.Find("F1/VirtualMachineInstancetype/labelled"),
		"trigger": fixture.Find("F2/VirtualMachineClusterPreference/labelled"), // only a trigger would upgrade it
	}
	sources, upgrades := map[string]*appsv1.ControllerRevision{}, map[string]*v1alpha1.ControllerRevisionUpgrade{}
	for name, f := range machines {
		sources[name] = c.controllerRevision(c.machine(f))
		if name == "source" {
			mark(sources[name], `"2"`)
		}
		if name != "trigger" {
			upgrades[name] = c.upgradeByName(name, sources[name].Name)
		}
	}
	mark(upgrades["upgrade"], `"2"`)
	begun := `{"status":{"phase":"InUse","observedGeneration":1,"source":{"uid":"` + string(sources["upgrade"].UID) + `","version":"v1alpha1"}}}`
	if err := c.Status().Patch(t.Context(), upgrades["upgrade"], client.RawPatch(types.MergePatchType, []byte(begun))); err != nil {
		t.Fatal(err)
	}
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace + "-newer", Annotations: newer},
		Spec:       v1alpha1.ControllerRevisionUpgradeTriggerSpec{Namespace: c.namespace},
	}
	if err := c.Create(t.Context(), trigger); err != nil {
		t.Fatal(err)
	}

	_, user := c.serviceAccountOf(RevisionUpgrader, func(rbacv1.PolicyRule) bool { return false })
	manage := func() *process {
		return c.manageAs(user, "", EnableVariable+"=false", EnableRevisionUpgrader+"=true")
	}
	p := manage()
	c.awaitUpgrade(upgrades["other"], revision.Retained)
	c.awaitUpgrade(upgrades["source"], revision.Failed)
	c.awaitTrigger(trigger, revisionupgrade.ReasonNewerFormat.Name)
	c.await("the upgrade of a newer release to be refused", func() bool {
		c.get(upgrades["upgrade"])
		return meta.IsStatusConditionTrue(upgrades["upgrade"].Status.Conditions, v1alpha1.ConditionStalled)
	})
	for what, refused := range map[string]struct {
		object     client.Object
		conditions []metav1.Condition
	}{
		"controllerrevisionupgrade " + c.namespace + "/upgrade":            {upgrades["upgrade"], upgrades["upgrade"].Status.Conditions},
		"controllerrevision " + c.namespace + "/" + sources["source"].Name: {upgrades["source"], upgrades["source"].Status.Conditions},
		"controllerrevisionupgradetrigger " + trigger.Name:                 {trigger, trigger.Status.Conditions},
	} {
		c.mustHaveKstatus(refused.object, status.FailedStatus)
		stalled := meta.FindStatusCondition(refused.conditions, v1alpha1.ConditionStalled)
		want := what + ` has format "2", and this release of Godwit reads format 1: a newer release wrote it; ` + format.Do
		if stalled == nil || stalled.Reason != storagedecision.ReasonNewerFormat.Name || !strings.HasSuffix(stalled.Message, want) {
			t.Errorf("condition %+v, want %s", stalled, want)
		}
		c.await("an event about "+what, func() bool {
			list := &eventsv1.EventList{}
			return c.List(t.Context(), list) == nil && slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Regarding.UID == refused.object.GetUID() && e.Type == "Warning" && strings.Contains(e.Note, want)
			})
		})
	}
	if s := upgrades["upgrade"].Status; s.Phase != "InUse" || s.Source == nil || s.Source.UID != sources["upgrade"].UID || s.Replacement != nil {
		t.Errorf("the status of the upgrade of a newer release is now %+v", s)
	}
	for name, f := range machines {
		if now := c.controllerRevision(sources[name].Name); name != "other" && (now.ResourceVersion != sources[name].ResourceVersion || c.revisionName(f) != now.Name) {
			t.Errorf("%s: revision %s is written, or %s refers to %s", name, now.Name, f.VM, c.revisionName(f))
		}
	}
	if made := c.upgrades(); len(made) != len(upgrades) {
		t.Errorf("%d upgrades, want %d", len(made), len(upgrades))
	}
	counting := c.trigger("counts", v1alpha1.ControllerRevisionUpgradeTriggerSpec{})
	c.awaitTrigger(counting, revisionupgrade.ReasonUpgradesFailed.Name)
	if s := counting.Status; s.Counts.Failed != 2 || s.Counts.InUse != 0 || !slices.ContainsFunc(s.Failures, func(f v1alpha1.Failure) bool {
		return f.Name == sources["upgrade"].Name && f.Reason == decision.ReasonNewerFormat.Name
	}) {
		t.Errorf("the trigger counts %+v, with failures %+v", s.Counts, s.Failures)
	}
	p.mustEnd()

	mark(upgrades["upgrade"], "null")
	mark(sources["source"], "null")
	p = manage()
	for _, one := range upgrades {
		c.awaitUpgrade(one, revision.Retained)
	}
	p.mustEnd()
	mark(trigger, "null")
	manage()
	c.awaitTrigger(trigger, revisionupgrade.ReasonSourcesRetained.Name)
	for name, f := range machines {
		if c.revisionName(f) == sources[name].Name {
			t.Errorf("%s: %s still refers to the old revision", name, f.VM)
		}
	}
}

// get reads an object again.
func (c *cluster) get(o client.Object) {
	c.t.Helper()
	if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		c.t.Fatal(err)
	}
}

// checkpoint writes status.checkpoint.
func (c *cluster) checkpoint(name, text string) {
	c.t.Helper()
	m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Status().Patch(c.t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"status":{"checkpoint":`+text+`}}`))); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) crd(name string) *apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(c.t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
		c.t.Fatal(err)
	}
	return crd
}
