package upgrade_test

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/godwit-dev/godwit/revision"
)

// deny has the API server refuse updates of the namespace's machines for which an
// expression is false, and returns what takes that back.
func (y *testNamespace) deny(expression string) (allow func()) {
	y.t.Helper()
	admission := y.core.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: y.namespace + ".godwit.dev"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"kubevirt.io"}, APIVersions: []string{"v1"}, Resources: []string{"virtualmachines"}},
			}}}},
			// A label tells when the policy is in force.
			Validations: []admissionv1.Validation{{
				Expression: `!has(object.metadata.labels) || !("probe" in object.metadata.labels)`, Message: "probed",
			}, {Expression: expression, Message: "the machine is locked", Reason: new(metav1.StatusReasonForbidden)}},
		},
	}
	y.must(admission.ValidatingAdmissionPolicies().Create(y.t.Context(), policy, metav1.CreateOptions{}))
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": y.namespace}}},
		},
	}
	y.must(admission.ValidatingAdmissionPolicyBindings().Create(y.t.Context(), binding, metav1.CreateOptions{}))
	y.await(true)
	return func() {
		y.t.Helper()
		y.must(nil, admission.ValidatingAdmissionPolicyBindings().Delete(y.t.Context(), binding.Name, metav1.DeleteOptions{}))
		y.await(false)
	}
}

// await asks the server, without writing anything, until the policy is in force, or no
// longer is.
func (y *testNamespace) await(inForce bool) {
	y.t.Helper()
	y.must(nil, wait.PollUntilContextTimeout(y.t.Context(), 20*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := y.dynamic.Resource(machines).Namespace(y.namespace).Patch(ctx, "web", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"probe":""}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return false, err
		}
		return (err != nil) == inForce, nil
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
	r := y.advance(revision.Policy{}, revision.Request{Name: source})
	if r.Phase != revision.Failed || r.Reason != revision.ReasonRefused || !strings.Contains(r.Message, "the machine is locked") {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	results := y.run(revision.Policy{})
	y.mustBe(results, source, revision.Retained, revision.ReasonRetained)
	y.mustBe(results, preference.RevisionName("web"), revision.Retained, revision.ReasonRetained)
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
		r := y.mustBe(y.run(revision.Policy{}), source, revision.Failed, revision.ReasonRefused)
		for _, want := range []string{"VirtualMachine web", inSpec, "the machine is locked"} {
			if !strings.Contains(r.Message, want) {
				t.Errorf("%q does not say %s", r.Message, want)
			}
		}
		y.later(2 * revision.DefaultRetention)
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
