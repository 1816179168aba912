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
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// Namespaces of the processes of Godwit.
const (
	managerNamespace = "godwit"
	agentNamespace   = "godwit-agent"
)

// hub is a hub that runs.
type hub struct {
	*ocm.Hub
	// direct reads no cache, and is not slowed.
	direct client.Client
	// watch runs the controllers that play klusterlets.
	watch ctrl.Manager
}

// server is the address of the hub in kubeconfigs.
func (h *hub) server() string { return h.Config().Host }

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
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
	running, err := ocm.StartHub(ctx, name, ocm.HubOptions{CRDs: crds})
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
	if h.direct, err = client.New(unlimited(h.Config()), client.Options{Scheme: ocm.Scheme()}); err != nil {
		return err
	}
	if h.watch, err = ctrl.NewManager(unlimited(h.Config()), ctrl.Options{Scheme: ocm.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}}); err != nil {
		return err
	}
	objects := []client.Object{&operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "cluster-manager"}}}
	for _, namespace := range []string{managerNamespace, agentNamespace, agent.AccountNamespace} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	for _, o := range objects {
		if err := h.direct.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// cluster reads a ManagedCluster from the cache, or returns false.
func (h *hub) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, bool, error) {
	mc := &clusterv1.ManagedCluster{}
	err := h.watch.GetClient().Get(ctx, client.ObjectKey{Name: name}, mc)
	return mc, err == nil, client.IgnoreNotFound(err)
}

// startHubs starts both at the same time.
func startHubs(ctx context.Context, names ...string) ([]*hub, error) {
	hubs, errs := make([]*hub, len(names)), make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { hubs[i], errs[i] = startHub(ctx, name) })
	}
	group.Wait()
	return hubs, errors.Join(errs...)
}
