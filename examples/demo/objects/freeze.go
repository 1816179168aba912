package objects

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/examples/demo/stage"
)

// The policy and the one object it denies writes to.
const (
	policyName      = "change-freeze"
	frozenNamespace = "billing"
	frozenName      = "route-42"
	frozen          = frozenNamespace + "/" + frozenName
)

const (
	probeEvery = 100 * time.Millisecond
	// enforceTimeout is many times the second in which a server learns of a
	// policy.
	enforceTimeout = 20 * time.Second
)

// freeze is a policy under which one object can't be written.
type freeze struct {
	clients kubernetes.Interface
	objects dynamic.Interface
}

func freezePolicy() *admissionv1.ValidatingAdmissionPolicy {
	fail := admissionv1.Fail
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{
					ResourceNames: []string{frozenName},
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Update},
						Rule: admissionv1.Rule{
							APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{"httproutes"},
						},
					},
				}},
			},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("object.metadata.namespace != %q", frozenNamespace),
				Message:    "no changes before the audit is over",
			}},
		},
	}
}

// begin returns when the API server enforces the policy.
func (f freeze) begin(ctx context.Context) error {
	policies := f.clients.AdmissionregistrationV1()
	if _, err := policies.ValidatingAdmissionPolicies().Create(ctx, freezePolicy(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create policy %s: %w", policyName, err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind policy %s: %w", policyName, err)
	}
	return f.await(ctx, true)
}

// relax makes the policy record what it would deny, and returns when the API
// server does so.
func (f freeze) relax(ctx context.Context) error {
	audit := []byte(`{"spec":{"validationActions":["Audit"]}}`)
	_, err := f.clients.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().
		Patch(ctx, policyName, types.MergePatchType, audit, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("relax policy %s: %w", policyName, err)
	}
	return f.await(ctx, false)
}

// await probes by a dry run of the very write that godwit sends.
func (f freeze) await(ctx context.Context, denied bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, enforceTimeout,
		stage.Wrong("after %v policy %s is still not as it was set", enforceTimeout, policyName))
	defer cancel()
	route := f.objects.Resource(resource("httproutes", newVersion)).Namespace(frozenNamespace)
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		_, err := route.Patch(ctx, frozenName, types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && ctx.Err() == nil:
			return fmt.Errorf("probe policy %s: %w", policyName, err)
		case (err != nil) == denied && ctx.Err() == nil:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
