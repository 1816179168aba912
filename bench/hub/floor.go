package main

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/hub/cluster"
)

// measureFloor moves clusters that know both hubs, by nothing but the field spec.hubAcceptsClient of both hubs.
func measureFloor(ctx context.Context, f *fleet, n int) (seconds float64, err error) {
	all := names("floor", n)
	var left sync.WaitGroup
	left.Add(n)
	if err := f.create(ctx, f.source, all, setup{others: map[string][]byte{f.target.server(): f.target.BootstrapKubeconfig()}, done: left.Done}); err != nil {
		return 0, err
	}
	if err := measure.Each(all, atATime, func(name string) error {
		return f.target.direct.Create(ctx, &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{cluster.AnnotationAccepted: "bench"}},
			Spec:       clusterv1.ManagedClusterSpec{LeaseDurationSeconds: leaseSeconds},
		})
	}); err != nil {
		return 0, err
	}
	began := time.Now()
	for _, turn := range []struct {
		*hub
		accepts bool
	}{{f.target, true}, {f.source, false}} {
		if err := measure.Each(all, atATime, func(name string) error { return turn.accept(ctx, name, turn.accepts) }); err != nil {
			return 0, err
		}
	}
	registered := make(chan struct{})
	go func() {
		left.Wait()
		close(registered)
	}()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-registered:
	}
	seconds = time.Since(began).Seconds()
	for _, name := range all {
		if err := f.mustBeAt(f.target, name, 2); err != nil {
			return 0, err
		}
	}
	return seconds, f.remove(ctx, all)
}

func (h *hub) accept(ctx context.Context, name string, accepts bool) error {
	mc := &clusterv1.ManagedCluster{}
	if err := h.direct.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		return err
	}
	before := mc.DeepCopy()
	mc.Spec.HubAcceptsClient = accepts
	return h.direct.Patch(ctx, mc, client.MergeFrom(before))
}

// remove ends the clusters of the floor, whose leases would be a load of their own.
func (f *fleet) remove(ctx context.Context, all []string) error {
	f.mutex.Lock()
	for _, name := range all {
		delete(f.klusterlets, name)
	}
	f.mutex.Unlock()
	return measure.Each(all, atATime, func(name string) error {
		for _, h := range []*hub{f.source, f.target} {
			if err := client.IgnoreNotFound(h.direct.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})); err != nil {
				return err
			}
		}
		return nil
	})
}
