package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	protocol "github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/test/process"
)

// floor is the time of a move without Godwit.
type floor struct {
	// SwitchSeconds is the time until clusters that know both hubs have switched, after changes of spec.hubAcceptsClient alone.
	SwitchSeconds float64 `json:"switchSeconds"`
	// RemovalSeconds is the time from the deletion of their ManagedClusters until the source has none of them.
	RemovalSeconds float64 `json:"removalSeconds"`
}

func measureFloor(ctx context.Context, f *fleet, n int) (r floor, err error) {
	if err := f.configureBothHubs(ctx); err != nil {
		return r, err
	}
	all := frame.Names("floor", n)
	if err := f.create(ctx, all, bothHubs); err != nil {
		return r, err
	}
	if err := frame.Each(all, writers, func(name string) error {
		return f.target.Client.Create(ctx, &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{cluster.AnnotationAccepted: "bench"}},
			Spec:       clusterv1.ManagedClusterSpec{LeaseDurationSeconds: leaseSeconds},
		})
	}); err != nil {
		return r, err
	}
	began := time.Now()
	if err := frame.Each(all, writers, func(name string) error { return f.target.accept(ctx, name, true) }); err != nil {
		return r, err
	}
	if err := frame.Each(all, writers, func(name string) error { return f.source.accept(ctx, name, false) }); err != nil {
		return r, err
	}
	if err := f.awaitAt(ctx, f.target, all, 2); err != nil {
		return r, err
	}
	r.SwitchSeconds = time.Since(began).Seconds()
	r.RemovalSeconds, err = f.measureRemoval(ctx, all)
	return r, errors.Join(err, f.remove(ctx, all))
}

// bothHubs is a KlusterletConfig of the source hub that gives klusterlets the bootstrap kubeconfig of the target hub, too.
const bothHubs = "both-hubs"

func (f *fleet) configureBothHubs(ctx context.Context) error {
	spec, err := cluster.TwoHubs{Secret: bothHubs, Reconnect: protocol.DefaultReconnect}.Spec(ctx, f.source.Client)
	if err != nil {
		return err
	}
	config := cluster.KlusterletConfig(bothHubs)
	config.Object["spec"] = spec
	return errors.Join(f.source.Client.Create(ctx, config), f.source.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: bootstrapNamespace, Name: bothHubs}, Data: map[string][]byte{cluster.KubeconfigKey: f.target.BootstrapKubeconfig()},
	}))
}

// measureRemoval deletes the ManagedClusters of the source, and returns how long the hub takes until they are gone.
func (f *fleet) measureRemoval(ctx context.Context, all []string) (seconds float64, err error) {
	began := time.Now()
	if err := frame.Each(all, writers, func(name string) error {
		return f.source.Client.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}); err != nil {
		return 0, err
	}
	for _, name := range all {
		if err := process.Poll(ctx, "the removal of "+name, func(ctx context.Context) error {
			found, err := f.source.has(ctx, name)
			if found {
				err = fmt.Errorf("%s has ManagedCluster %s", f.source.Name, name)
			}
			return err
		}); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Seconds(), nil
}

// remove ends the clusters of the floor, because the renewals of their leases would be a load for the next measurement.
func (f *fleet) remove(ctx context.Context, all []string) error {
	f.mutex.Lock()
	for _, name := range all {
		delete(f.klusterlets, name)
	}
	f.mutex.Unlock()
	return frame.Each(all, writers, func(name string) error {
		for _, h := range []*hub{f.source, f.target} {
			if err := client.IgnoreNotFound(h.Client.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})); err != nil {
				return err
			}
		}
		return nil
	})
}
