package ocm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// leaseSeconds is the time after which agents renew the lease of their cluster. The default of 60 would make each test minutes
// longer.
const leaseSeconds = 5

// Spoke is the API server that managed clusters share as their own.
type Spoke struct {
	*controlplane.ControlPlane

	client     client.Client
	program    string
	kubeconfig string
	log        *logFile

	mu       sync.Mutex
	clusters []*Cluster
}

// StartSpoke starts the API server of managed clusters. Import adds clusters.
func StartSpoke(ctx context.Context) (*Spoke, error) {
	program, err := registration()
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, fmt.Errorf("start the API server of managed clusters: %w", err)
	}
	s := &Spoke{ControlPlane: cp, program: program}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the API server of managed clusters: %w", err), s.Stop())
	}
	return s, nil
}

// Stop ends the agents and then their API server.
func (s *Spoke) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.clusters {
		errs = append(errs, c.Stop())
	}
	errs = append(errs, s.ControlPlane.Stop())
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	return errors.Join(errs...)
}

// Import makes a managed cluster of a hub: as the hub's user it creates the ManagedCluster, and as the import controller
// it gives the cluster's klusterlet the bootstrap kubeconfig of the hub. The cluster then registers by itself.
func (s *Spoke) Import(ctx context.Context, h *Hub, name string) (*Cluster, error) {
	if err := h.Client.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
	}); err != nil {
		return nil, fmt.Errorf("import cluster %s: %w", name, err)
	}
	c, err := startCluster(s, name, [][]byte{h.BootstrapKubeconfig()})
	if err != nil {
		return nil, fmt.Errorf("import cluster %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters = append(s.clusters, c)
	return c, nil
}

// startCluster starts a cluster whose klusterlet has bootstrap kubeconfigs.
func startCluster(s *Spoke, name string, bootstraps [][]byte) (*Cluster, error) {
	c := &Cluster{
		Name: name, program: s.program, kubeconfig: s.kubeconfig, log: s.log, dir: filepath.Join(s.Dir(), "clusters", name),
		bootstraps: bootstraps, stopping: make(chan struct{}), kubelet: make(chan struct{}),
	}
	c.endAgents = sync.OnceFunc(func() { close(c.stopping) })
	if err := os.MkdirAll(c.hubDir(), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of its agent: %w", err)
	}
	if err := c.startAgent(); err != nil {
		return nil, err
	}
	go c.keepAgent()
	c.klusterlet = startLoop(name+": klusterlet", s.log, c.applyWork)
	return c, nil
}

func (s *Spoke) start(ctx context.Context) error {
	var err error
	if s.log, err = openLog(filepath.Join(s.Dir(), "played.log")); err != nil {
		return err
	}
	if s.client, err = client.New(s.Config(), client.Options{Scheme: Scheme()}); err != nil {
		return fmt.Errorf("connect to it: %w", err)
	}
	s.kubeconfig = filepath.Join(s.Dir(), "spoke.kubeconfig")
	if err := controlplane.WriteKubeconfig(s.kubeconfig, s.Config()); err != nil {
		return err
	}
	crds, err := CRDs(ctx, "cluster/v1alpha1/*_clusterclaims.crd.yaml")
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, s.Config(), crds...); err != nil {
		return err
	}
	return s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: klusterletNamespace}})
}
