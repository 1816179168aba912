package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/test/process"
)

// atATime is how many klusterlets act at the same time, for each hub, and how many clusters are created.
const atATime = 64

// fleet are all clusters of two hubs.
type fleet struct {
	source, target *hub

	mutex       sync.Mutex
	klusterlets map[string]*klusterlet
}

func newFleet(source, target *hub) *fleet {
	return &fleet{source: source, target: target, klusterlets: map[string]*klusterlet{}}
}

// play plays all klusterlets until the context ends.
func (f *fleet) play(ctx context.Context) error {
	failed := make(chan error, 2)
	for _, h := range []*hub{f.source, f.target} {
		if err := ctrl.NewControllerManagedBy(h.watch).Named("klusterlets-" + h.Name).For(&clusterv1.ManagedCluster{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: atATime}).
			Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				return f.reconcile(ctx, h, r.Name)
			})); err != nil {
			return err
		}
		go func() { failed <- h.watch.Start(ctx) }()
		if !h.watch.GetCache().WaitForCacheSync(ctx) {
			return errors.Join(<-failed, ctx.Err())
		}
	}
	return nil
}

func (f *fleet) reconcile(ctx context.Context, h *hub, name string) (reconcile.Result, error) {
	f.mutex.Lock()
	k := f.klusterlets[name]
	f.mutex.Unlock()
	if k == nil {
		return reconcile.Result{}, nil
	}
	mc, found, err := h.cluster(ctx, name)
	if err != nil || !found {
		return reconcile.Result{}, err
	}
	again, err := k.reconcile(ctx, h, mc)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		err, again = nil, 100*time.Millisecond // an agent has written meanwhile
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// names of n clusters.
func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return all
}

// setup is how the klusterlets of some clusters begin. Each knows its hub.
type setup struct {
	// configured means that they take their kubeconfigs from ManifestWorks.
	configured bool
	// others are more kubeconfigs, by the address of the server.
	others map[string][]byte
	// done is called when a cluster has left its first hub.
	done func()
}

// create makes clusters of a hub, and returns when they have registered.
func (f *fleet) create(ctx context.Context, h *hub, all []string, s setup) error {
	err := measure.Each(all, atATime, func(name string) error {
		k := &klusterlet{name: name, configured: s.configured, done: s.done, first: h, kubeconfigs: map[string][]byte{h.server(): h.BootstrapKubeconfig()}, annotation: map[*hub]string{}}
		maps.Copy(k.kubeconfigs, s.others)
		f.mutex.Lock()
		f.klusterlets[name] = k
		f.mutex.Unlock()
		return h.direct.Create(ctx, &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
		})
	})
	if err != nil {
		return err
	}
	for _, name := range all {
		if err := process.Poll(ctx, name+" at "+h.Name, func(context.Context) error { return f.mustBeAt(h, name, 1) }); err != nil {
			return err
		}
	}
	return nil
}

// mustBeAt returns an error unless a cluster is at a hub, and has renewed its lease there so often.
func (f *fleet) mustBeAt(h *hub, name string, renewals int) error {
	f.mutex.Lock()
	k := f.klusterlets[name]
	f.mutex.Unlock()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	switch {
	case k.at == nil:
		return fmt.Errorf("%s is at no hub", name)
	case k.at != h:
		return fmt.Errorf("%s is at %s, want %s", name, k.at.Name, h.Name)
	case k.configured && !k.isConfiguredBy(h):
		return fmt.Errorf("%s has no ManifestWork of %s", name, h.Name)
	case k.renewals < renewals:
		return fmt.Errorf("%s has renewed its lease at %s %d times", name, h.Name, k.renewals)
	}
	return nil
}

// equip creates what moves with a cluster: credentials, add-ons, a host with a status, and a deployment.
func (f *fleet) equip(ctx context.Context, name string) error {
	objects := []client.Object{}
	for _, secret := range []string{name + "-admin-password", name + "-admin-kubeconfig", "pull", "bmc"} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: secret}, Data: map[string][]byte{"data": make([]byte, 4<<10)}})
	}
	add := func(apiVersion, kind, object string, spec map[string]any) {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
		o.SetNamespace(name)
		o.SetName(object)
		objects = append(objects, o)
	}
	add("agent.open-cluster-management.io/v1", "KlusterletAddonConfig", name, map[string]any{"clusterName": name})
	add("metal3.io/v1alpha1", "BareMetalHost", "node-1", map[string]any{"online": true, "bmc": map[string]any{"address": "redfish://1", "credentialsName": "bmc"}})
	add("hive.openshift.io/v1", "ClusterDeployment", name, map[string]any{"clusterName": name, "installed": true, "pullSecretRef": map[string]any{"name": "pull"}})
	for _, o := range objects {
		if err := f.source.direct.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s of %s: %w", o.GetName(), name, err)
		}
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "BareMetalHost" {
			u.Object["status"] = map[string]any{"provisioning": map[string]any{"state": "provisioned", "ID": name}, "poweredOn": true, "errorCount": int64(0)}
			if err := f.source.direct.Status().Update(ctx, u); err != nil {
				return fmt.Errorf("set the status of %s of %s: %w", o.GetName(), name, err)
			}
		}
	}
	return nil
}
