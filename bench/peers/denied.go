package main

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/process"
)

// deniedObject is neither the first object, which a dry run may try, nor on the last page.
var deniedObject = widget.Name(7)

// measureDenied has a policy that denies every write of one object, until each contestant is done or has given up. Then
// the policy goes.
func (b *bench) measureDenied(ctx context.Context, contestants []contestant) error {
	measure.Say("denied: an admission policy denies every write of %s", deniedObject)
	all, err := b.subjects(ctx, "denied", contestants)
	if err != nil {
		return err
	}
	defer b.finish(ctx, all)
	lift, err := b.deny(ctx, all[0].resource)
	if err != nil {
		return err
	}
	if err := each(ctx, all, func(s *subject) (err error) {
		if err := s.resource.FlipAndProbe(ctx); err != nil {
			return err
		}
		s.migration, err = s.prepare(ctx, s.resource)
		return err
	}); err != nil {
		return err
	}
	if err := widget.Age(ctx); err != nil {
		return err
	}
	if err := each(ctx, all, func(s *subject) error { return s.migration.begin(ctx) }); err != nil {
		return err
	}
	if err := each(ctx, all, func(s *subject) (err error) {
		s.residue.During, err = s.look(ctx, s.wait(ctx, faultLimit))
		return err
	}); err != nil {
		return err
	}
	if err := lift(ctx); err != nil {
		return err
	}
	return each(ctx, all, func(s *subject) (err error) {
		s.residue.After, err = s.look(ctx, s.wait(ctx, recoveryLimit/2))
		return err
	})
}

// deny installs the policy, and returns once it is in force.
func (b *bench) deny(ctx context.Context, probe *widget.Resource) (lift func(context.Context) error, err error) {
	clients, err := kubernetes.NewForConfig(b.plane.Config())
	if err != nil {
		return nil, err
	}
	const name = "bench-peers"
	admission := clients.AdmissionregistrationV1()
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{widget.Plural}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("object.metadata.name != %q", deniedObject), Message: "denied for a measurement"}},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if err := b.awaitDenial(ctx, probe, true); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := admission.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		if err := admission.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return b.awaitDenial(ctx, probe, false)
	}, nil
}

// awaitDenial returns when the API server denies the write, or does not any more.
func (b *bench) awaitDenial(ctx context.Context, probe *widget.Resource, want bool) error {
	clients, err := dynamic.NewForConfig(b.plane.Config())
	if err != nil {
		return err
	}
	objects := clients.Resource(schema.GroupVersionResource{Group: probe.Group(), Version: "v1", Resource: widget.Plural}).Namespace(widget.Namespace)
	return process.Poll(ctx, "the policy", func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"probe":%q}}}`, time.Now())
		_, err := objects.Patch(ctx, deniedObject, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if denied := apierrors.IsInvalid(err) || apierrors.IsForbidden(err); denied == want {
			return nil
		}
		return fmt.Errorf("a write is answered with %v", err) //nolint:errorlint // nil where it should be denied
	})
}
