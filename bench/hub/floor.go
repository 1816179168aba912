package main

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// floor is what a move takes without Godwit.
type floor struct {
	// SwitchSeconds are those until clusters that know both hubs have changed them, by nothing but the field spec.hubAcceptsClient.
	SwitchSeconds float64 `json:"switchSeconds"`
	// RemovalSeconds are those until the source has none of them, when their ManagedClusters are deleted.
	RemovalSeconds float64 `json:"removalSeconds"`
}

func measureFloor(ctx context.Context, f *fleet, n int) (r floor, err error) {
	all := names("floor", n)
	var left sync.WaitGroup
	left.Add(n)
	if err := f.create(ctx, f.source, all, setup{others: map[string][]byte{f.target.server(): f.target.BootstrapKubeconfig()}, done: left.Done}); err != nil {
		return r, err
	}
	if err := measure.Each(all, atATime, func(name string) error {
		return f.target.direct.Create(ctx, &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{cluster.AnnotationAccepted: "bench"}},
			Spec:       clusterv1.ManagedClusterSpec{LeaseDurationSeconds: leaseSeconds},
		})
	}); err != nil {
		return r, err
	}
	began := time.Now()
	for _, turn := range []struct {
		*hub
		accepts bool
	}{{f.target, true}, {f.source, false}} {
		if err := measure.Each(all, atATime, func(name string) error { return turn.accept(ctx, name, turn.accepts) }); err != nil {
			return r, err
		}
	}
	registered := make(chan struct{})
	go func() {
		left.Wait()
		close(registered)
	}()
	select {
	case <-ctx.Done():
		return r, ctx.Err()
	case <-registered:
	}
	r.SwitchSeconds = time.Since(began).Seconds()
	for _, name := range all {
		if err := f.mustBeAt(f.target, name, 2); err != nil {
			return r, err
		}
	}
	r.RemovalSeconds, err = f.measureRemoval(ctx, all)
	return r, errors.Join(err, f.remove(ctx, all))
}

// measureRemoval deletes the clusters of the source by nothing but their ManagedClusters, and returns how long the hub takes until
// they are gone. Each has the ManifestWork that an import controller writes.
func (f *fleet) measureRemoval(ctx context.Context, all []string) (seconds float64, err error) {
	if err := measure.Each(all, atATime, func(name string) error {
		return f.source.direct.Create(ctx, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: cluster.KlusterletWork(name)}})
	}); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := measure.Each(all, atATime, func(name string) error {
		return f.source.direct.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}); err != nil {
		return 0, err
	}
	for _, name := range all {
		for {
			_, found, err := f.source.cluster(ctx, name)
			if err != nil {
				return 0, err
			}
			if !found {
				break
			}
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return time.Since(began).Seconds(), nil
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
