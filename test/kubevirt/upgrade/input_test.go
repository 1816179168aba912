package upgrade_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestBadInput: who asks for an upgrade that can't be is told why and what to do, and
// the source is left as it is, byte for byte.
func TestBadInput(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "6f0b9a52-58a6-4a3b-8d5c-6f2d5f6f4f01", Controller: new(true)}
	data := func(text string) func(*appsv1.ControllerRevision) {
		return func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(text) }
	}
	replaced := func(old, with string) func(*appsv1.ControllerRevision) {
		return data(strings.Replace(instancetype.Data, old, with, 1))
	}
	for name, test := range map[string]struct {
		spoil   func(*appsv1.ControllerRevision)
		policy  decision.Policy
		reason  *godwit.Reason
		message []string // what it has to say
	}{
		"of no family":                {spoil: data(`{"spec":{"template":{"$patch":"replace"}}}`), reason: decision.ReasonNotInFamily, message: []string{"VirtualMachine web", inSpec, "correct the reference"}},
		"of another owner":            {spoil: func(r *appsv1.ControllerRevision) { r.OwnerReferences = []metav1.OwnerReference{other} }, reason: decision.ReasonUnexpectedOwner, message: []string{"StatefulSet web", "VirtualMachine web"}},
		"of another kind":             {spoil: replaced(`"VirtualMachineClusterInstancetype"`, `"VirtualMachineClone"`), reason: decision.ReasonUndecodable, message: []string{"VirtualMachineClone"}},
		"of the other role":           {spoil: func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(preference.Data) }, reason: decision.ReasonUndecodable, message: []string{"VirtualMachinePreference", "correct the reference"}},
		"of a later version":          {spoil: replaced(`/v1alpha2"`, `/v2"`), reason: decision.ReasonUnknownVersion, message: []string{"v2", "v1beta1"}},
		"1 MiB":                       {spoil: replaced(`"guest":"4Gi"`, `"guest":"`+strings.Repeat("9", 1<<20)+`"`), reason: decision.ReasonUndecodable, message: []string{"bytes", "more than the 524288"}},
		"deep":                        {spoil: replaced(`"guest":"4Gi"`, `"guest":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)), reason: decision.ReasonUndecodable, message: []string{"64 levels deep"}},
		"a key twice":                 {spoil: replaced(`"guest":"4Gi"`, `"guest":"4Gi","guest":"8Gi"`), reason: decision.ReasonUndecodable, message: []string{`"spec.memory.guest"`, "twice"}},
		"a wrong type":                {spoil: replaced(`"guest":"4Gi"`, `"guest":true`), reason: decision.ReasonUndecodable, message: []string{`"spec.memory.guest"`}},
		"an unknown field":            {spoil: replaced(`"guest":"4Gi"`, `"guest":"4Gi","ballast":"1Gi"`), reason: decision.ReasonLossy, message: []string{"spec.memory.ballast"}},
		"a target that is not served": {policy: decision.Policy{Target: "v1"}, reason: decision.ReasonTargetNotServed, message: []string{"virtualmachineclusterinstancetypes.instancetype.kubevirt.io", "v1beta1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newNamespace(t)
			vm := y.create(fixture.VirtualMachine(y.namespace, "web", both, instancetype))
			r := instancetype.Revision(vm)
			if test.spoil != nil {
				test.spoil(r)
			}
			before := y.createRevision(r)
			result := y.advance(test.policy, revision.Request{Name: r.Name, UID: before.UID})
			if result.Phase != revision.Failed || result.Reason != test.reason {
				t.Errorf("%s (%s: %.300s), want Failed (%s)", result.Phase, result.Reason, result.Message, test.reason)
			}
			for _, want := range test.message {
				if !strings.Contains(result.Message, want) {
					t.Errorf("%.300q does not say %s", result.Message, want)
				}
			}
			if len(result.Message) > 1000 {
				t.Errorf("the message has %d bytes", len(result.Message))
			}
			y.mustRefer(machines, "web", map[string]string{inSpec: r.Name, inStatus: r.Name})
			if diff := cmp.Diff(map[string]*appsv1.ControllerRevision{r.Name: before}, y.revisions()); diff != "" {
				t.Errorf("it was touched: %.2000s", diff)
			}
		})
	}
}

// TestRequestForAnotherControllerRevision: there is nothing to upgrade, and the message says why and which command to run. A revision that existed once needs no user action.
func TestRequestForAnotherControllerRevision(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.create(fixture.VirtualMachine(y.namespace, "web", both))
	start := y.createRevision(fixture.StartRevision(vm))
	for name, test := range map[string]struct {
		request revision.Request
		want    revision.Phase
		reason  *godwit.Reason
		message string
	}{
		"a name of nothing":     {revision.Request{Name: "nothing-is-called-so"}, revision.Failed, decision.ReasonSourceGone, "kubectl get controllerrevisions -n " + y.namespace},
		"what was there once":   {revision.Request{Name: "nothing-is-called-so", UID: start.UID}, revision.Skipped, decision.ReasonSourceGone, "no object refers to it"},
		"what a scan has seen":  {revision.Request{Name: "nothing-is-called-so", Seen: true}, revision.Skipped, decision.ReasonSourceGone, "no object refers to it"},
		"what stores no object": {revision.Request{Name: start.Name}, revision.Failed, decision.ReasonNotInFamily, "godwit revision plan -n " + y.namespace},
	} {
		if r := y.advance(decision.Policy{}, test.request); r.Phase != test.want || r.Reason != test.reason || !strings.Contains(r.Message, test.message) {
			t.Errorf("%s: %s (%s: %s), want %s (%s: %s)", name, r.Phase, r.Reason, r.Message, test.want, test.reason, test.message)
		}
	}
	y.mustHave(start.Name)
}

// TestOneNameForBothRoles: a machine names one revision as its instance type and as its
// preference. It can't be both, even where its spec would read as either.
func TestOneNameForBothRoles(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	bare := fixture.Find("F0/VirtualMachineClusterInstancetype/empty")
	bare.Data = `{"apiVersion":"","spec":"e30="}`
	y.machine("web", fixture.InSpec, bare)
	source := bare.RevisionName("web")
	y.change(machines, "web", "", set(map[string]any{"name": bare.Object, "revisionName": source}, "spec", "preference"))
	i := y.mustPlan(decision.Policy{}, source, decision.Blocked, decision.ReasonConflictingTypes)
	if !strings.Contains(i.Message, "VirtualMachineClusterInstancetype") || !strings.Contains(i.Message, "VirtualMachineClusterPreference") {
		t.Errorf("%q does not say what it is taken for", i.Message)
	}
	y.run(decision.Policy{})
	y.mustHave(source)
	// With one reference less it is clear what it is.
	y.change(machines, "web", "", set(nil, "spec", "preference"))
	y.retire()
	y.mustHave("web" + instancetypeTail)
	y.mustResolve()
}

// TestWrongLabelsAreCorrected: the data decides, and the labels are corrected.
func TestWrongLabelsAreCorrected(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.create(fixture.VirtualMachine(y.namespace, "web", both, instancetype))
	r := instancetype.Revision(vm)
	r.Labels["instancetype.kubevirt.io/object-version"] = "v1beta1"
	y.createRevision(r)
	y.mustPlan(decision.Policy{}, r.Name, decision.Upgrade, nil)
	y.retire()
	y.mustHave("web" + instancetypeTail)
	y.mustResolve()
}

// TestSiblingThatCannotBeUpgraded does not keep the other one from it.
func TestSiblingThatCannotBeUpgraded(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.create(fixture.VirtualMachine(y.namespace, "web", both, instancetype, preference))
	y.createRevisions(vm, instancetype)
	broken := preference.Revision(vm)
	broken.Data.Raw = []byte(strings.Replace(preference.Data, `"spec":{`, `"spec":{"cpu":7,"was":{`, 1) + "}")
	y.createRevision(broken)
	y.mustPlan(decision.Policy{}, broken.Name, decision.Blocked, decision.ReasonUndecodable)
	y.retire()
	y.mustHave("web"+instancetypeTail, broken.Name)
	y.mustRefer(machines, "web", map[string]string{
		inSpec: "web" + instancetypeTail, inStatus: "web" + instancetypeTail,
		"/spec/preference/revisionName": broken.Name, "/status/preferenceRef/controllerRevisionRef/name": broken.Name,
	})
}

// TestUnreferencedIsReportedAndKept.
func TestUnreferencedIsReportedAndKept(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.createRevisions(y.create(fixture.VirtualMachine(y.namespace, "web", both)), instancetype)
	i := y.mustPlan(decision.Policy{}, instancetype.RevisionName("web"), decision.Unreferenced, decision.ReasonUnreferenced)
	if !strings.Contains(i.Message, "v1alpha2") {
		t.Errorf("%q does not say which version it holds", i.Message)
	}
	y.retire()
	y.mustHave(instancetype.RevisionName("web"))
}

// TestHostileRevisionDoesNotStopTheOthers: the deepest payload that an API server takes
// is in the same list.
func TestHostileRevisionDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.machine("web", both, instancetype)
	hostile := preference.Revision(vm)
	for depth := 9999; ; depth-- {
		hostile.Data.Raw = fmt.Appendf(nil, `{"spec":%s%s}`, strings.Repeat("[", depth), strings.Repeat("]", depth))
		if _, err := y.core.AppsV1().ControllerRevisions(y.namespace).Create(t.Context(), hostile, metav1.CreateOptions{}); err == nil {
			t.Logf("the API server takes a depth of %d", depth)
			break
		}
		if depth < 9900 {
			t.Fatal("the API server takes no such depth")
		}
	}
	y.mustBe(y.run(decision.Policy{}), instancetype.RevisionName("web"), revision.Retained, decision.ReasonRetained)
}
