package conformance

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// preparationError is an error in the preparation of a check.
type preparationError struct{ err error }

func (e *preparationError) Error() string { return e.err.Error() }

func (e *preparationError) Unwrap() error { return e.err }

// asPreparationError marks an error as one of the preparation.
func asPreparationError(err error) error {
	if err == nil {
		return nil
	}
	return &preparationError{err: err}
}

// running is a started provider.
type running interface {
	// Kill ends it like a machine failure: it sends no further request. Kill does not wait.
	Kill()
	// Wait returns when it has ended.
	Wait()
}

// environment is the environment of one check: a namespace, an external system, and a provider that the check starts.
type environment struct {
	kind     Kind
	harness  Harness
	system   System
	provider Provider
	calls    *calls

	client     client.WithWatch
	namespace  string
	namespaced bool
	// before are the external resources that existed before the check.
	before []string

	mu      sync.Mutex
	running running
	// output returns the last lines of a provider that runs as a process.
	output func() string
	// createdObjects are the objects that the check has created.
	createdObjects []*unstructured.Unstructured
}

func newEnvironment(ctx context.Context, k Kind, h Harness) (*environment, error) {
	config := rest.CopyConfig(h.Config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"}}
	if err := c.Create(ctx, namespace); err != nil {
		return nil, fmt.Errorf("create a namespace: %w", err)
	}
	e := &environment{kind: k, harness: h, calls: &calls{counts: map[Operation]int{}}, client: c, namespace: namespace.Name}
	if e.system, e.provider, err = h.Open(ctx, e.namespace); err != nil {
		return nil, fmt.Errorf("open the external system: %w", err)
	}
	if e.namespaced, err = c.IsObjectNamespaced(k.Manifest(e.namespace, "scope")); err != nil {
		return nil, errors.Join(fmt.Errorf("find the scope of the kind: %w", err), e.close(ctx))
	}
	if err := e.checkAlone(); err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	if e.system.OnCall != nil {
		e.system.OnCall(e.calls.decide)
	}
	if e.system.List != nil {
		if e.before, err = e.system.List(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("list the external resources: %w", err), e.close(ctx))
		}
	}
	return e, nil
}

// checkAlone refuses parallel checks whose providers would reconcile the objects of each other's checks.
func (e *environment) checkAlone() error {
	switch {
	case e.harness.Parallel == 1:
		return nil
	case !e.namespaced:
		return errors.New("the kind is cluster-scoped, so that parallel checks see each other's objects: set Harness.Parallel to 1")
	case e.provider.Command != nil && !e.provider.WatchesNamespace:
		return errors.New("parallel checks see each other's objects: have Command pass the namespace that Open gets as the one to watch, " +
			"and set Provider.WatchesNamespace, or set Harness.Parallel to 1")
	}
	return nil
}

// kill may be called within a call of the provider.
func (e *environment) kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running != nil {
		e.running.Kill()
	}
}

func (e *environment) stop() {
	e.kill()
	e.mu.Lock()
	ended := e.running
	e.running = nil
	e.mu.Unlock()
	if ended != nil {
		ended.Wait()
	}
}

// cleanupTimeout bounds the cleanup after a check.
const cleanupTimeout = 30 * time.Second

// close stops the provider, and deletes the objects and the external resources of the check.
func (e *environment) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	e.calls.intercept(nil)
	e.stop()
	var all []error
	for _, o := range e.createdObjects {
		all = append(all, e.release(ctx, o))
	}
	if e.system.List != nil && e.system.Remove != nil {
		left, err := e.created(ctx)
		all = append(all, err)
		for _, name := range left {
			all = append(all, e.system.Remove(ctx, name))
		}
	}
	if e.system.Close != nil {
		all = append(all, e.system.Close(ctx))
	}
	all = append(all, e.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}))
	return errors.Join(all...)
}

// release deletes an object and keeps its external resource.
func (e *environment) release(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	if err := e.client.Delete(ctx, o); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(e.patch(ctx, o, `{"metadata":{"finalizers":null}}`))
}

// manifest returns an object that no other check uses.
func (e *environment) manifest() *unstructured.Unstructured {
	id := "c" + strings.ToLower(rand.Text()[:10])
	o := e.kind.Manifest(e.namespace, id).DeepCopy()
	if o.GetName() == "" {
		o.SetName(id)
	}
	if e.namespaced {
		o.SetNamespace(e.namespace)
	}
	return o
}

func (e *environment) create(ctx context.Context, o *unstructured.Unstructured) error {
	e.createdObjects = append(e.createdObjects, o)
	if err := e.client.Create(ctx, o); err != nil {
		return asPreparationError(fmt.Errorf("create %s: %w", o.GetName(), err))
	}
	return nil
}

func (e *environment) patch(ctx context.Context, o *unstructured.Unstructured, body string) error {
	return e.client.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
}

func (e *environment) delete(ctx context.Context, o *unstructured.Unstructured) error {
	return e.client.Delete(ctx, o.DeepCopy())
}

// rename sets the external name, as a user does.
func (e *environment) rename(ctx context.Context, o *unstructured.Unstructured, name string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{meta.AnnotationKeyExternalName: name}}})
	if err != nil {
		return err
	}
	return e.patch(ctx, o, string(body))
}

// created lists the external resources that exist since the check began.
func (e *environment) created(ctx context.Context) ([]string, error) {
	now, err := e.system.List(ctx)
	if err != nil {
		return nil, asPreparationError(fmt.Errorf("list the external resources: %w", err))
	}
	return slices.DeleteFunc(slices.Clone(now), func(name string) bool { return slices.Contains(e.before, name) }), nil
}

// checkCreated compares how many external resources exist since the check began.
func (e *environment) checkCreated(ctx context.Context, want int) error {
	names, err := e.created(ctx)
	if err == nil && len(names) != want {
		err = fmt.Errorf("%d external resources exist, and %d should: %s", len(names), want, strings.Join(names, ", "))
	}
	return err
}

func (e *environment) exists(ctx context.Context, name string) (bool, error) {
	names, err := e.system.List(ctx)
	if err != nil {
		return false, asPreparationError(fmt.Errorf("list the external resources: %w", err))
	}
	return slices.Contains(names, name), nil
}
