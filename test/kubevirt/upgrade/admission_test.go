package upgrade_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/policy"
)

// deny has the API server refuse updates of the namespace's machines for which an
// expression is false, and returns what takes that back.
func (y *testNamespace) deny(expression string) (allow func()) {
	y.t.Helper()
	locked := policy.Policy{
		Name: y.namespace + ".godwit.dev", Group: "kubevirt.io", Resource: "virtualmachines", Namespace: y.namespace,
		// A label tells when the policy is in force.
		Validations: []admissionv1.Validation{{
			Expression: `!has(object.metadata.labels) || !("probe" in object.metadata.labels)`, Message: "probed",
		}, {Expression: expression, Message: "the machine is locked", Reason: new(metav1.StatusReasonForbidden)}},
	}
	y.must(nil, locked.Create(y.t.Context(), y.core))
	y.await(true)
	return func() {
		y.t.Helper()
		y.must(nil, locked.Delete(y.t.Context(), y.core))
		y.await(false)
	}
}

// await asks the server, without writing anything, until the policy is in force, or no
// longer is.
func (y *testNamespace) await(inForce bool) {
	y.t.Helper()
	y.must(nil, policy.Await(y.t.Context(), inForce, func(ctx context.Context) error {
		_, err := y.dynamic.Resource(machines).Namespace(y.namespace).Patch(ctx, "web", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"probe":""}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}))
}

// TestRefusedUntilBothAreUpgraded: the machine takes a spec only with both references
// at the new version. One upgrade by itself is held, and says why; with the other one
// it goes through.
func TestRefusedUntilBothAreUpgraded(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype, preference)
	y.deny(`object.spec.instancetype.revisionName.contains("v1beta1") == object.spec.preference.revisionName.contains("v1beta1")`)
	source := instancetype.RevisionName("web")
	r := y.advance(decision.Policy{}, revision.Request{Name: source})
	if r.Phase != revision.Failed || r.Reason != decision.ReasonRefused || !strings.Contains(r.Message, "the machine is locked") {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	results := y.run(decision.Policy{})
	y.mustBe(results, source, revision.Retained, decision.ReasonRetained)
	y.mustBe(results, preference.RevisionName("web"), revision.Retained, decision.ReasonRetained)
	y.retire()
	y.mustHave("web"+instancetypeTail, "web"+preferenceTail)
	y.mustResolve()
}

// TestRepointThatIsRefusedEachTime: the source is kept, however long the webhook refuses, and is reported as InUse; the status
// is not written before the spec. When the webhook allows the write, the upgrade continues.
func TestRepointThatIsRefusedEachTime(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	allow := y.deny(`object.spec == oldObject.spec`)
	source := instancetype.RevisionName("web")
	before := y.revisions()[source]
	for range 3 {
		r := y.mustBe(y.run(decision.Policy{}), source, revision.Failed, decision.ReasonRefused)
		for _, want := range []string{"VirtualMachine web", inSpec, "the machine is locked"} {
			if !strings.Contains(r.Message, want) {
				t.Errorf("%q does not say %s", r.Message, want)
			}
		}
		y.later(2 * decision.DefaultRetention)
	}
	y.mustRefer(machines, "web", map[string]string{inSpec: source, inStatus: source})
	if after := y.revisions()[source]; after.ResourceVersion != before.ResourceVersion {
		t.Error("the source was written")
	}
	allow()
	y.retire()
	y.mustHave("web" + instancetypeTail)
	y.mustResolve()
}

// TestTry: admission refuses one machine as it is. A dry run of the writes says so, writes
// nothing, and leaves the plan of another machine alone.
func TestTry(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype, preference)
	y.machine("db", both, instancetype)
	y.deny(`object.metadata.name != "web"`)
	version := y.read(machines, "db").GetResourceVersion()
	actions := map[string]decision.Item{}
	for i, err := range y.upgrader(decision.Policy{}).Try(t.Context(), revision.Scope{Namespace: y.namespace}) {
		y.must(i, err)
		actions[i.Name] = i
	}
	for _, name := range []string{instancetype.RevisionName("web"), preference.RevisionName("web")} {
		i := actions[name]
		if i.Action != decision.Blocked || i.Reason != decision.ReasonRefused {
			t.Errorf("%s is %s (%s: %s)", name, i.Action, i.Reason, i.Message)
		}
		mustSay(t, i.Message, "VirtualMachine web as it is, in a dry run")
		mustSay(t, i.Message, "the machine is locked")
	}
	if i := actions[instancetype.RevisionName("db")]; i.Action != decision.Upgrade || i.Reason != nil {
		t.Errorf("the other machine is %s (%s: %s)", i.Action, i.Reason, i.Message)
	}
	if now := y.read(machines, "db").GetResourceVersion(); now != version || len(y.revisions()) != 3 {
		t.Error("a dry run has written")
	}
}
