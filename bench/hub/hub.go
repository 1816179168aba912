package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

const (
	// managerNamespace and agentNamespace have the processes of Godwit.
	managerNamespace = "godwit"
	agentNamespace   = "godwit-agent"
	// bootstrapNamespace has the secrets that a KlusterletConfig names.
	bootstrapNamespace = "multicluster-engine"
)

// hub is a hub that runs.
type hub struct {
	*ocm.Hub
	// watch runs the controllers that simulate klusterlets. Its client reads from a cache.
	watch ctrl.Manager
}

// startHubs starts hubs at the same time.
func startHubs(ctx context.Context, b *frame.Bench, names ...string) ([]*hub, error) {
	hubs, errs := make([]*hub, len(names)), make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { hubs[i], errs[i] = startHub(ctx, name) })
	}
	group.Wait()
	for _, h := range hubs {
		if h != nil {
			b.Cleanup(h.Stop)
		}
	}
	return hubs, errors.Join(errs...)
}

// startHub starts a hub without the import controller of package ocm, which reads every cluster again and again.
func startHub(ctx context.Context, name string) (*hub, error) {
	crds, err := controlplane.ReadCRDs("../test/hub/testdata/crds/*.yaml")
	if err != nil {
		return nil, err
	}
	// Without ManagedServiceAccounts, the agent of the target hub issues the token of the bootstrap account.
	crds = slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Names.Kind == "ManagedServiceAccount"
	})
	running, err := ocm.StartHub(ctx, name, ocm.HubOptions{CRDs: crds, BootstrapNamespace: bootstrapNamespace})
	if err != nil {
		return nil, err
	}
	h := &hub{Hub: running}
	h.StopImports()
	if err := h.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare hub %s: %w", name, err), h.Stop())
	}
	return h, nil
}

func (h *hub) prepare(ctx context.Context) (err error) {
	if h.watch, err = ctrl.NewManager(h.Config(), ctrl.Options{
		Scheme: ocm.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	}); err != nil {
		return err
	}
	objects := []client.Object{&operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "cluster-manager"}}}
	for _, namespace := range []string{managerNamespace, agentNamespace} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	for _, o := range objects {
		if err := h.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// importer simulates the import controller.
func (h *hub) importer() klusterlet.Importer {
	return klusterlet.Importer{
		Client: h.watch.GetClient(), Server: h.Config().Host, Kubeconfig: h.BootstrapKubeconfig(), BootstrapNamespace: bootstrapNamespace,
	}
}

// has reports whether the cache has a ManagedCluster.
func (h *hub) has(ctx context.Context, name string) (bool, error) {
	err := h.watch.GetClient().Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	return err == nil, client.IgnoreNotFound(err)
}

// accept sets whether the hub accepts a cluster.
func (h *hub) accept(ctx context.Context, name string, accepts bool) error {
	mc := &clusterv1.ManagedCluster{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		return err
	}
	before := mc.DeepCopy()
	mc.Spec.HubAcceptsClient = accepts
	return h.Client.Patch(ctx, mc, client.MergeFrom(before))
}
