package main

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/policy"
)

// deniedObject is not the first object, which a dry run may try, and not on the last page.
var deniedObject = widget.Name(7)

// measureDenied denies every write of one object by a policy, until each contestant has ended. It then deletes the policy.
func (b *bench) measureDenied(ctx context.Context, contestants []contestant) error {
	frame.Logf("denied: an admission policy denies every write of %s", deniedObject)
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
		s.residue.During, err = s.readState(ctx, s.wait(ctx, faultLimit))
		return err
	}); err != nil {
		return err
	}
	if err := lift(ctx); err != nil {
		return err
	}
	return each(ctx, all, func(s *subject) (err error) {
		s.residue.After, err = s.readState(ctx, s.wait(ctx, recoveryLimit/2))
		return err
	})
}

// deny installs the policy, and returns once it is in force.
func (b *bench) deny(ctx context.Context, probe *widget.Resource) (lift func(context.Context) error, err error) {
	clients, err := kubernetes.NewForConfig(b.cluster.Config())
	if err != nil {
		return nil, err
	}
	p := policy.Policy{Name: "bench-peers", Group: "*", Resource: widget.Plural, Validations: []admissionregistrationv1.Validation{{
		Expression: fmt.Sprintf("object.metadata.name != %q", deniedObject), Message: "denied for a measurement",
	}}}
	objects := b.clients.Resource(schema.GroupVersionResource{Group: probe.Group(), Version: "v1", Resource: widget.Plural}).Namespace(widget.Namespace)
	write := func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"probe":%q}}}`, time.Now())
		_, err := objects.Patch(ctx, deniedObject, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := p.Create(ctx, clients); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := p.Delete(ctx, clients); err != nil {
			return err
		}
		return policy.Await(ctx, false, write)
	}, policy.Await(ctx, true, write)
}
