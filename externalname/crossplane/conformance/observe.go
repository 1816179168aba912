package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/manifest"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/wait"
)

// importOnly adds an external resource that differs from the spec of an object, and waits until the provider has
// observed it.
func (e *environment) importOnly(ctx context.Context) (*unstructured.Unstructured, string, error) {
	o := e.manifest()
	name, err := e.system.Add(ctx, o)
	if err == nil {
		err = e.system.Change(ctx, name)
	}
	if err != nil {
		return nil, "", asPreparationError(err)
	}
	o = manifest.WithPolicies(e.identified(o, name), "Observe")
	return o, name, errors.Join(e.start(ctx), e.create(ctx, o))
}

// observeOnlyWritesNothing: the spec differs, and the policies only allow to observe.
func observeOnlyWritesNothing(ctx context.Context, e *environment) (string, error) {
	o, name, err := e.importOnly(ctx)
	if err != nil {
		return "", err
	}
	if _, err := e.await(ctx, o, "reconciled", func(o *unstructured.Unstructured) bool { return synced(o) || refused(o) }); err != nil {
		return "", err
	}
	return "", e.checkWhileQuiet(ctx, func() error {
		found, err := e.exists(ctx, name)
		if err == nil && !found {
			err = fmt.Errorf("external resource %q was only to be observed, and is gone", name)
		}
		live, getErr := e.get(ctx, o)
		if getErr == nil && refused(live) {
			getErr = fmt.Errorf("expected: Synced; is: %s", describe(live))
		}
		return errors.Join(err, getErr, e.calls.checkNone(Create, Update, Delete))
	})
}

// diffIsReported: the same, and the differences are to be seen.
func diffIsReported(ctx context.Context, e *environment) (string, error) {
	o, _, err := e.importOnly(ctx)
	if err != nil {
		return "", err
	}
	if _, err := e.await(ctx, o, "Synced", synced); err != nil {
		return "", err
	}
	drift := e.kind.driftCondition()
	var live *unstructured.Unstructured
	err = wait.Until(ctx, min(e.harness.Timeout, maxPolls*e.harness.Poll), func() (bool, error) {
		if live, err = e.get(ctx, o); err == nil && manifest.ConditionOf(live, drift).Status != "True" {
			err = fmt.Errorf("the external resource differs, and condition %s is not True", drift)
		}
		return err == nil, err
	})
	if err != nil {
		return "", err
	}
	message := manifest.ConditionOf(live, drift).Message
	if message == "" {
		return "", fmt.Errorf("condition %s does not say what differs", drift)
	}
	if err := e.checkWhileQuiet(ctx, func() error { return nil }); err != nil {
		return "", err
	}
	n := 0
	err = wait.Until(ctx, e.harness.Timeout, func() (bool, error) {
		if n, err = e.events(ctx, live, message); err == nil && n == 0 {
			err = fmt.Errorf("no event has the differences: %s", message)
		}
		return n > 0, err
	})
	if err == nil && n > 1 {
		err = fmt.Errorf("%d events for one difference", n)
	}
	return "", err
}

// missingUnderPolicies: an object whose external resource does not exist, under policies that
// do not allow to create it.
func missingUnderPolicies(ctx context.Context, e *environment) (string, error) {
	if err := e.start(ctx); err != nil {
		return "", err
	}
	var objects []*unstructured.Unstructured
	for _, policies := range [][]string{{"Observe"}, {"Observe", "LateInitialize"}, {"Observe", "Update"}} {
		o := manifest.WithPolicies(e.identified(e.manifest(), e.kind.Unknown), policies...)
		if err := e.create(ctx, o); err != nil {
			return "", err
		}
		objects = append(objects, o)
	}
	var all []error
	for _, o := range objects {
		live, err := e.await(ctx, o, "reconciled", func(o *unstructured.Unstructured) bool { return synced(o) || refused(o) })
		if err == nil && synced(live) {
			err = errors.New("the object is Synced, although the external resource does not exist")
		}
		if err != nil {
			policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
			all = append(all, fmt.Errorf("policies %v: %w", policies, err))
		}
	}
	all = append(all, e.checkWhileQuiet(ctx, func() error { return e.calls.checkNone(Create, Update, Delete) }))
	return "", errors.Join(all...)
}

// missingIsDrift: another client deletes the external resource.
func missingIsDrift(ctx context.Context, e *environment) (string, error) {
	o, name, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	creates := e.calls.count(Create)
	if err := e.system.Remove(ctx, name); err != nil {
		return "", asPreparationError(err)
	}
	err = wait.Until(ctx, e.harness.Timeout, func() (bool, error) {
		names, err := e.created(ctx)
		if err == nil && len(names) == 0 {
			err = errors.New("the external resource was deleted by another client, and is not created again")
		}
		return len(names) > 0, err
	})
	if err != nil {
		return "", err
	}
	if _, _, err := e.awaitBound(ctx, o); err != nil {
		return "", err
	}
	if e.system.OnCall != nil && e.calls.count(Create) != creates+1 {
		return "", fmt.Errorf("the provider has called Create %d times for one drift", e.calls.count(Create)-creates)
	}
	return "", e.checkCreated(ctx, 1)
}

// becomesReady: an external resource that exists, after its creation.
func becomesReady(ctx context.Context, e *environment) (string, error) {
	o, _, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	_, err = e.await(ctx, o, "Ready, with a status that the API server accepts", func(live *unstructured.Unstructured) bool {
		return synced(live) && manifest.ConditionOf(live, "Ready").Status == "True" && manifest.HasStatus(live)
	})
	return "", err
}

// statusSurvives: no state of an object that was imported is Synced and has lost its status.
func statusSurvives(ctx context.Context, e *environment) (string, error) {
	if err := e.start(ctx); err != nil {
		return "", err
	}
	names := []func(o *unstructured.Unstructured, name string) string{func(_ *unstructured.Unstructured, name string) string { return name }}
	if e.kind.LookupName != nil {
		names = append(names, func(o *unstructured.Unstructured, _ string) string { return e.kind.LookupName(o) })
	}
	note := ""
	for i, nameOf := range names {
		o := e.manifest()
		name, err := e.system.Add(ctx, o)
		if err != nil {
			return "", asPreparationError(err)
		}
		o = e.identified(o, nameOf(o, name))
		if err := e.statusOf(ctx, o); err != nil {
			return "", fmt.Errorf("external name %q: %w", meta.GetExternalName(o), err)
		}
		note = fmt.Sprintf("%d imports", i+1)
	}
	return note, nil
}

func (e *environment) statusOf(ctx context.Context, o *unstructured.Unstructured) error {
	seen, err := e.record(ctx, o)
	if err != nil {
		return err
	}
	if err := e.create(ctx, o); err != nil {
		seen.end()
		return err
	}
	live, name, err := e.awaitBound(ctx, o)
	if err == nil {
		err = e.system.Change(ctx, name) // The update that follows is another write of the object.
	}
	if err == nil {
		err = e.checkWhileQuiet(ctx, func() error { return nil })
	}
	states := seen.end()
	if err != nil {
		return err
	}
	for _, state := range states {
		if synced(state) && !manifest.HasStatus(state) {
			return fmt.Errorf("resourceVersion %s is Synced without status.atProvider: it was never written, or a write of the whole object has reset it", state.GetResourceVersion())
		}
	}
	if len(states) == 0 {
		return asPreparationError(fmt.Errorf("the API server has reported no state of %s", live.GetName()))
	}
	return nil
}

// specIsNotWritten: neither creation nor observation changes the spec.
func specIsNotWritten(ctx context.Context, e *environment) (string, error) {
	if err := e.start(ctx); err != nil {
		return "", err
	}
	o := e.manifest()
	if err := e.create(ctx, o); err != nil {
		return "", err
	}
	before := o.DeepCopy() // with the defaults of the API server
	if _, _, err := e.awaitBound(ctx, o); err != nil {
		return "", asPreparationError(err)
	}
	return "", e.checkWhileQuiet(ctx, func() error {
		live, err := e.get(ctx, o)
		if err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(before.Object["spec"], live.Object["spec"]) {
			return fmt.Errorf("the provider has changed the spec: %s", manifest.FirstDifference("spec", before.Object["spec"], live.Object["spec"]))
		}
		if before.GetGeneration() != live.GetGeneration() {
			return fmt.Errorf("the generation is %d, and was %d", live.GetGeneration(), before.GetGeneration())
		}
		return nil
	})
}
