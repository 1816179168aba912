package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/manifest"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/wait"
)

// A check concludes that nothing happens after quietPolls poll intervals with at least quietReads reads of the
// resource, or after maxPolls: a provider that refuses an object does not read, and a busy machine is late.
const (
	quietPolls = 5
	quietReads = 3
	maxPolls   = 20
)

func synced(o *unstructured.Unstructured) bool {
	return manifest.ConditionOf(o, "Synced").Status == "True"
}

func refused(o *unstructured.Unstructured) bool {
	return manifest.ConditionOf(o, "Synced").Status == "False"
}

// describe returns what a user sees of an object.
func describe(o *unstructured.Unstructured) string {
	c, ready := manifest.ConditionOf(o, "Synced"), manifest.ConditionOf(o, "Ready")
	return fmt.Sprintf("external name %q, Ready %s %s, Synced %s %s %s", clip(meta.GetExternalName(o)), ready.Status, ready.Reason, c.Status, c.Reason, c.Message)
}

func clip(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}

func (e *environment) get(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	return live, e.client.Get(ctx, client.ObjectKeyFromObject(o), live)
}

// await waits until fits returns true for the object.
func (e *environment) await(ctx context.Context, o *unstructured.Unstructured, what string, fits func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	var live *unstructured.Unstructured
	err := wait.Until(ctx, e.harness.Timeout, func() (bool, error) {
		var err error
		if live, err = e.get(ctx, o); err != nil {
			return false, err
		}
		if fits(live) {
			return true, nil
		}
		return false, fmt.Errorf("expected: %s; is: %s", what, describe(live))
	})
	return live, err
}

// awaitBound waits until the object is Synced with a name that identifies an external resource.
func (e *environment) awaitBound(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, string, error) {
	return e.awaitBoundWithin(ctx, e.harness.Timeout, o)
}

func (e *environment) awaitBoundWithin(ctx context.Context, timeout time.Duration, o *unstructured.Unstructured) (*unstructured.Unstructured, string, error) {
	var live *unstructured.Unstructured
	err := wait.Until(ctx, timeout, func() (bool, error) {
		var err error
		if live, err = e.get(ctx, o); err != nil {
			return false, err
		}
		bound, err := e.bound(ctx, live)
		if err == nil && !bound {
			err = fmt.Errorf("expected: Synced with the name of an external resource; is: %s", describe(live))
		}
		return bound, err
	})
	if err != nil {
		return live, "", err
	}
	return live, e.kind.nameOf(live), nil
}

func (e *environment) bound(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	name := e.kind.nameOf(o)
	if !synced(o) || name == "" {
		return false, nil
	}
	return e.exists(ctx, name)
}

// creationGrace is how long after a creation crossplane-runtime does not believe that an external resource is gone, unless
// the provider sets managed.WithCreationGracePeriod.
const creationGrace = 30 * time.Second

// awaitGone waits until the object is deleted.
func (e *environment) awaitGone(ctx context.Context, o *unstructured.Unstructured) error {
	return e.awaitGoneUnless(ctx, o, func() error { return nil })
}

// awaitGoneUnless waits until the object is deleted, and holds has returned no error before and after.
func (e *environment) awaitGoneUnless(ctx context.Context, o *unstructured.Unstructured, holds func() error) error {
	return wait.Until(ctx, e.harness.Timeout, func() (bool, error) {
		if err := holds(); err != nil {
			return false, err
		}
		live, err := e.get(ctx, o)
		switch {
		case kerrors.IsNotFound(err):
			return true, holds()
		case err != nil:
			return false, err
		}
		return false, fmt.Errorf("the object is not deleted: %s, finalizers %v%s", describe(live), live.GetFinalizers(), e.withinGrace(live))
	})
}

// withinGrace says that the creation grace of crossplane-runtime may be why an object is not deleted.
func (e *environment) withinGrace(live *unstructured.Unstructured) string {
	if created := meta.GetExternalCreateSucceeded(live); time.Since(created) > creationGrace {
		return ""
	}
	return fmt.Sprintf(". For %s after a creation, crossplane-runtime does not believe that an external resource is gone: "+
		"allow a longer Harness.Timeout than %s, or shorten the grace by managed.WithCreationGracePeriod", creationGrace, e.harness.Timeout)
}

// awaitRefused waits until the object is not Synced.
func (e *environment) awaitRefused(ctx context.Context, o *unstructured.Unstructured, why string) (*unstructured.Unstructured, error) {
	return e.await(ctx, o, "not Synced, because "+why, refused)
}

// checkWhileQuiet waits for several observations, and returns the first error of holds.
func (e *environment) checkWhileQuiet(ctx context.Context, holds func() error) error {
	began, reads := time.Now(), e.calls.count(Read, Search)
	for {
		if err := holds(); err != nil {
			return err
		}
		waited := time.Since(began)
		enough := e.system.OnCall == nil || e.calls.count(Read, Search) >= reads+quietReads
		if waited > maxPolls*e.harness.Poll || enough && waited > quietPolls*e.harness.Poll {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait.Pause):
		}
	}
}

// awaitCalls waits until the provider has called that many times.
func (e *environment) awaitCalls(ctx context.Context, op Operation, n int) error {
	return wait.Until(ctx, e.harness.Timeout, func() (bool, error) {
		if seen := e.calls.count(op); seen < n {
			return false, fmt.Errorf("the provider has called %s %d times, expected %d", op, seen, n)
		}
		return true, nil
	})
}

// history records every state of an object that the API server reports.
type history struct {
	mu     sync.Mutex
	states []*unstructured.Unstructured
	stop   func()
}

// record starts a recording, which ends with history.end.
func (e *environment) record(ctx context.Context, o *unstructured.Unstructured) (*history, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(o.GroupVersionKind().GroupVersion().WithKind(o.GetKind() + "List"))
	options := []client.ListOption{&client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + o.GetName()}}}
	if e.namespaced {
		options = append(options, client.InNamespace(e.namespace))
	}
	watch, err := e.client.Watch(ctx, list, options...)
	if err != nil {
		return nil, asPreparationError(fmt.Errorf("watch %s: %w", o.GetName(), err))
	}
	h := &history{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for change := range watch.ResultChan() {
			if state, ok := change.Object.(*unstructured.Unstructured); ok {
				h.mu.Lock()
				h.states = append(h.states, state)
				h.mu.Unlock()
			}
		}
	}()
	h.stop = func() { watch.Stop(); <-done }
	return h, nil
}

// end ends the recording and returns the states.
func (h *history) end() []*unstructured.Unstructured {
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.states)
}

// events counts the events of an object that contain a text.
func (e *environment) events(ctx context.Context, o *unstructured.Unstructured, text string) (int, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("EventList")
	if err := e.client.List(ctx, list); err != nil {
		return 0, asPreparationError(fmt.Errorf("list events: %w", err))
	}
	sum := 0
	for _, item := range list.Items {
		uid, _, _ := unstructured.NestedString(item.Object, "involvedObject", "uid")
		message, _, _ := unstructured.NestedString(item.Object, "message")
		if uid != string(o.GetUID()) || !strings.Contains(message, text) {
			continue
		}
		count, found, _ := unstructured.NestedInt64(item.Object, "count")
		if !found || count == 0 {
			count = 1
		}
		sum += int(count)
	}
	return sum, nil
}
