package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// contestant is one way to migrate objects.
type contestant interface {
	// name returns the name in the result.
	name() string
	// prepare starts the processes that run in a cluster before there is something to migrate.
	prepare(context.Context, *widget.Resource) (migration, error)
}

// migration is one migration by a contestant.
type migration interface {
	// begin starts the writes, or continues the writes of a process that was killed.
	begin(context.Context) error
	// wait returns when the contestant reports success, or reports that it stops trying. claim is the report.
	wait(context.Context) (claim string, err error)
	// kill ends the contestant's process as a crash does.
	kill() error
	// close ends the contestant's process, and removes what it has left in the cluster, except the objects and the CRD. It may be
	// called again.
	close(context.Context) error
}

const (
	// faultLimit is the time that a contestant has to end while a fault lasts.
	faultLimit = 20 * time.Second
	// recoveryLimit is the time that it has after a fault. It is longer than Godwit's settle time.
	recoveryLimit = 2 * time.Minute
)

// errLimit ends a migration that takes too long.
var errLimit = errors.New("limit reached")

// env is the environment in which a contestant runs.
type env struct {
	frame   *frame.Bench
	cluster *frame.Cluster
	clients dynamic.Interface // the administrator's
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// await watches one object of the cluster until it is as expected.
func await(ctx context.Context, objects dynamic.ResourceInterface, name string, ok func(*unstructured.Unstructured) bool) error {
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return objects.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return objects.Watch(ctx, o)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, lists, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		o, is := e.Object.(*unstructured.Unstructured)
		return is && ok(o), nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	return nil
}

// awaitTrim returns when the CRD's status lists the storage version alone.
func awaitTrim(ctx context.Context, clients dynamic.Interface, r *widget.Resource) error {
	return await(ctx, clients.Resource(crds), r.CRD(), func(crd *unstructured.Unstructured) bool {
		stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
		return len(stored) == 1 && stored[0] == r.Storage()
	})
}
