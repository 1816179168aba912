// Package policy denies updates by a ValidatingAdmissionPolicy, for tests, the demo and measurements.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// probeEvery is short compared with the second in which an API server adopts a policy.
	probeEvery = 50 * time.Millisecond
	// enforceTimeout is long enough for a busy machine.
	enforceTimeout = 5 * time.Minute
)

// Policy denies updates of objects for which an expression is false.
type Policy struct {
	Name string
	// Binding is the name of the binding; empty means Name.
	Binding string
	// Group and Resource are the group and the resource of the objects. A subresource is written as in an admission rule: pods/status.
	Group, Resource string
	// Names limits the policy to objects with these names, and Namespace to those in a namespace; empty means all.
	Names       []string
	Namespace   string
	Validations []admissionv1.Validation
}

// Create creates the policy and its binding. The API server enforces the policy up to a second later.
func (p Policy) Create(ctx context.Context, clients kubernetes.Interface) error {
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: p.Names,
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{p.Group}, APIVersions: []string{"*"}, Resources: []string{p.Resource}},
				},
			}}},
			Validations: p.Validations,
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.binding()},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: p.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if p.Namespace != "" {
		binding.Spec.MatchResources = &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": p.Namespace}},
		}
	}
	api := clients.AdmissionregistrationV1()
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create policy %s: %w", p.Name, err)
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind policy %s: %w", p.Name, err)
	}
	return nil
}

func (p Policy) binding() string { return cmp.Or(p.Binding, p.Name) }

// Audit changes the policy to record the writes that it would deny, and to allow them.
func (p Policy) Audit(ctx context.Context, clients kubernetes.Interface) error {
	audit := []byte(`{"spec":{"validationActions":["Audit"]}}`)
	_, err := clients.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Patch(ctx, p.binding(), types.MergePatchType, audit, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("audit by policy %s: %w", p.Name, err)
	}
	return nil
}

// Delete deletes the policy and its binding.
func (p Policy) Delete(ctx context.Context, clients kubernetes.Interface) error {
	api := clients.AdmissionregistrationV1()
	return errors.Join(
		api.ValidatingAdmissionPolicyBindings().Delete(ctx, p.binding(), metav1.DeleteOptions{}),
		api.ValidatingAdmissionPolicies().Delete(ctx, p.Name, metav1.DeleteOptions{}),
	)
}

// Await returns when the API server denies a write, or no longer does. The write is a dry run of an update that the policy
// denies.
func Await(ctx context.Context, denied bool, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, enforceTimeout, fmt.Errorf("after %v the API server has not adopted the policy", enforceTimeout))
	defer cancel()
	for {
		err := write(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err):
			return fmt.Errorf("probe a policy: %w", err)
		case (err != nil) == denied:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probeEvery):
		}
	}
}
