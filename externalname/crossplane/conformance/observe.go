package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	o = withPolicies(e.identified(o, name), "Observe")
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
	err = poll(ctx, min(e.harness.Timeout, maxPolls*e.harness.Poll), func() (bool, error) {
		if live, err = e.get(ctx, o); err == nil && conditionOf(live, drift).status != "True" {
			err = fmt.Errorf("the external resource differs, and condition %s is not True", drift)
		}
		return err == nil, err
	})
	if err != nil {
		return "", err
	}
	message := conditionOf(live, drift).message
	if message == "" {
		return "", fmt.Errorf("condition %s does not say what differs", drift)
	}
	if err := e.checkWhileQuiet(ctx, func() error { return nil }); err != nil {
		return "", err
	}
	n := 0
	err = poll(ctx, e.harness.Timeout, func() (bool, error) {
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
		o := withPolicies(e.identified(e.manifest(), e.kind.Unknown), policies...)
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
	err = poll(ctx, e.harness.Timeout, func() (bool, error) {
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
		if synced(state) && !hasStatus(state) {
			return fmt.Errorf("resourceVersion %s is Synced without status.atProvider: it was never written, or a write of the whole object has reset it", state.GetResourceVersion())
		}
	}
	if len(states) == 0 {
		return asPreparationError(fmt.Errorf("the API server has reported no state of %s", live.GetName()))
	}
	return nil
}

func hasStatus(o *unstructured.Unstructured) bool {
	atProvider, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "atProvider")
	return hasValue(atProvider)
}

// hasValue reports whether a value is set. The zero value of a Go struct is written with all its required fields.
func hasValue(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if hasValue(field) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(value, hasValue)
	case string:
		return value != ""
	case bool:
		return value
	case int64:
		return value != 0
	case float64:
		return value != 0
	}
	return value != nil
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
			return fmt.Errorf("the provider has changed the spec: %s", firstDifference("spec", before.Object["spec"], live.Object["spec"]))
		}
		if before.GetGeneration() != live.GetGeneration() {
			return fmt.Errorf("the generation is %d, and was %d", live.GetGeneration(), before.GetGeneration())
		}
		return nil
	})
}

// firstDifference names a field that two values have differently.
func firstDifference(path string, before, after any) string {
	was, ok := before.(map[string]any)
	is, alsoOK := after.(map[string]any)
	if !ok || !alsoOK {
		return fmt.Sprintf("%s is %v, and was %v", path, after, before)
	}
	keys := slices.Sorted(maps.Keys(was))
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if _, known := was[key]; !known {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if !equality.Semantic.DeepEqual(was[key], is[key]) {
			return firstDifference(path+"."+key, was[key], is[key])
		}
	}
	return path + " differs"
}

// conflictIsReported: the external system answers each call with its conflict for a while.
func conflictIsReported(ctx context.Context, e *environment) (string, error) {
	o, _, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	ops := []Operation{Read}
	if e.kind.Change != "" {
		ops = append(ops, Update)
	}
	for _, op := range append(ops, Delete) {
		e.calls.always(op, Fault{Answer: Conflict})
		switch op {
		case Update:
			err = e.patch(ctx, o, e.kind.Change)
		case Delete:
			err = e.delete(ctx, o)
		}
		if err != nil {
			return "", asPreparationError(err)
		}
		if err := e.awaitReported(ctx, o, op); err != nil {
			return "", err
		}
		e.calls.intercept(nil)
		if op == Delete {
			return fmt.Sprint(append(ops, Delete)), e.awaitGone(ctx, o)
		}
		if _, _, err := e.awaitBound(ctx, o); err != nil {
			return "", fmt.Errorf("after the conflict of %s: %w", op, err)
		}
	}
	return "", nil
}

// conflicts is more than a provider needs to report one.
const conflicts = 5

// awaitReported waits until the object reports the conflict, or the provider has ignored it
// several times.
func (e *environment) awaitReported(ctx context.Context, o *unstructured.Unstructured, op Operation) error {
	before := e.calls.count(op)
	return poll(ctx, e.harness.Timeout, func() (bool, error) {
		n := e.calls.count(op) - before
		live, err := e.get(ctx, o)
		if err != nil || refused(live) {
			return err == nil, err
		}
		err = fmt.Errorf("the external system has answered %s with a conflict %d times, and the object is: %s", op, n, describe(live))
		if n >= conflicts {
			err = &finalError{err: err}
		}
		return false, err
	})
}
