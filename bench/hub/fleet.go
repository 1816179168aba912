package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/process"
)

const (
	// writers is the number of klusterlets of a hub that act at the same time, and of clusters that are created at the same time.
	writers = 64
	// leaseSeconds is the time after which a klusterlet renews its lease.
	leaseSeconds = 5
	// passInterval is the time after which a klusterlet reads caches if no ManagedCluster has changed. Every second pass renews the
	// lease.
	passInterval = leaseSeconds * time.Second / 2
	// retryInterval is long compared with the time that a cache needs to get a write of another client.
	retryInterval = 100 * time.Millisecond
)

// fleet has the clusters of two hubs, with simulated klusterlets.
type fleet struct {
	source, target *hub

	mutex       sync.Mutex
	klusterlets map[string]*klusterlet.Klusterlet
}

// startFleet starts both hubs and the controllers that simulate klusterlets. It creates no clusters.
func startFleet(ctx context.Context, b *frame.Bench) (*fleet, error) {
	frame.Logf("starting two hubs")
	hubs, err := startHubs(ctx, b, "hub1", "hub2")
	if err != nil {
		return nil, err
	}
	f := &fleet{source: hubs[0], target: hubs[1], klusterlets: map[string]*klusterlet.Klusterlet{}}
	simulated, end := context.WithCancel(ctx)
	b.Cleanup(func() error { end(); return nil }) // before the hubs stop
	failed := make(chan error, len(hubs))
	for _, h := range hubs {
		if err := ctrl.NewControllerManagedBy(h.watch).Named("klusterlets-" + h.Name).For(&clusterv1.ManagedCluster{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: writers}).
			Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				return f.reconcile(ctx, h, r.Name)
			})); err != nil {
			return nil, err
		}
		go func() { failed <- h.watch.Start(simulated) }()
		if !h.watch.GetCache().WaitForCacheSync(simulated) {
			return nil, errors.Join(<-failed, ctx.Err())
		}
	}
	return f, nil
}

func (f *fleet) klusterlet(name string) *klusterlet.Klusterlet {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.klusterlets[name]
}

func (f *fleet) reconcile(ctx context.Context, h *hub, name string) (reconcile.Result, error) {
	k := f.klusterlet(name)
	if k == nil {
		return reconcile.Result{}, nil
	}
	err := k.Pass(ctx)
	if klusterlet.IsTransient(err) {
		return reconcile.Result{RequeueAfter: retryInterval}, nil
	}
	if registered := k.Hub(); registered != nil && registered != h.watch.GetClient() {
		return reconcile.Result{}, err // the controller of the other hub repeats the pass
	}
	return reconcile.Result{RequeueAfter: passInterval}, err
}

// create creates clusters of the source hub, and returns when they have registered. Their klusterlets are configured by a
// KlusterletConfig, if one is given.
func (f *fleet) create(ctx context.Context, names []string, klusterletConfig string) error {
	err := frame.Each(names, writers, func(name string) error {
		f.mutex.Lock()
		f.klusterlets[name] = &klusterlet.Klusterlet{
			Name: name, Source: f.source.importer(), Target: f.target.importer(), RenewEvery: leaseSeconds*time.Second - passInterval/2,
			Join: func(ctx context.Context, kubeconfig []byte) error { return f.join(ctx, name, kubeconfig) },
		}
		f.mutex.Unlock()
		mc := &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
		}
		if klusterletConfig != "" {
			mc.Annotations = map[string]string{cluster.AnnotationKlusterletConfig: klusterletConfig}
		}
		return f.source.Client.Create(ctx, mc)
	})
	if err != nil {
		return err
	}
	return f.awaitAt(ctx, f.source, names, 1)
}

// join requests a certificate of a hub with its bootstrap kubeconfig, as the agent of a cluster does.
func (f *fleet) join(ctx context.Context, name string, kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	bootstrap, err := client.New(config, client.Options{Scheme: f.source.Client.Scheme(), Mapper: f.source.Client.RESTMapper()})
	if err != nil {
		return err
	}
	csr, err := klusterlet.NewSigningRequest("", name)
	if err != nil {
		return err
	}
	csr.GenerateName = name + "-"
	if err := bootstrap.Create(ctx, csr); err != nil {
		return fmt.Errorf("register at %s: %w", config.Host, err)
	}
	return process.Poll(ctx, "the certificate of "+name, func(ctx context.Context) error {
		if err := bootstrap.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
			return err
		}
		if len(csr.Status.Certificate) == 0 {
			return fmt.Errorf("CertificateSigningRequest %s has no certificate", csr.Name)
		}
		return nil
	})
}

// awaitAt returns when each cluster is registered at a hub, is configured by it, and has renewed its lease there at least renewals
// times.
func (f *fleet) awaitAt(ctx context.Context, h *hub, names []string, renewals int) error {
	for _, name := range names {
		if err := process.Poll(ctx, name+" at "+h.Name, func(context.Context) error { return f.mustBeAt(h, name, renewals) }); err != nil {
			return err
		}
	}
	return nil
}

// mustBeAt fails unless a cluster is registered at a hub, is configured by it, and has renewed its lease there at least renewals
// times.
func (f *fleet) mustBeAt(h *hub, name string, renewals int) error {
	k := f.klusterlet(name)
	if !k.IsConfiguredBy(h.watch.GetClient()) {
		return fmt.Errorf("%s is not registered at %s, or has not applied its ManifestWork", name, h.Name)
	}
	if n := k.Renewals(); n < renewals {
		return fmt.Errorf("%s has renewed its lease at %s %d times, want %d", name, h.Name, n, renewals)
	}
	return nil
}

// equip creates the objects that move with a cluster: credentials, add-ons, a host with a status, and a deployment.
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
		if err := f.source.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s of %s: %w", o.GetName(), name, err)
		}
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "BareMetalHost" {
			u.Object["status"] = map[string]any{"provisioning": map[string]any{"state": "provisioned", "ID": name}, "poweredOn": true, "errorCount": int64(0)}
			if err := f.source.Client.Status().Update(ctx, u); err != nil {
				return fmt.Errorf("set the status of %s of %s: %w", o.GetName(), name, err)
			}
		}
	}
	return nil
}
