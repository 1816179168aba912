// Package klusterlet simulates managed clusters and the import controllers of two hubs, for tests, the demo and the benchmark of moves
// between hubs. A simulated klusterlet needs no API server of its own.
//
// Read importer.go, token.go, configuration.go, renders.go, then klusterlet.go.
package klusterlet

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/walk"
)

// Klusterlet simulates the agents of a managed cluster. They take the bootstrap kubeconfigs that their hub
// configures, leave a hub that does not accept the cluster if another one does, and renew its lease there.
type Klusterlet struct {
	Name           string
	Source, Target Importer
	// Unreachable means that the cluster can't reach the target hub.
	Unreachable bool
	// Denied is the reason for which the target hub denies the CertificateSigningRequest of the cluster. If it is empty, the
	// target hub approves the request.
	Denied string
	// Tick is the time between two passes of the agents in Run; 250 ms unless set.
	Tick time.Duration
	// RenewEvery is the time after which the agents renew the lease of the cluster; unless set, they renew it with every pass.
	RenewEvery time.Duration
	// Join registers the cluster at a hub with its bootstrap kubeconfig. Without Join, the cluster is registered at the source hub
	// from the start, and at another hub as soon as its agents choose it.
	Join func(ctx context.Context, kubeconfig []byte) error

	passes sync.Mutex // held during a pass
	// bootstraps are the bootstrap kubeconfigs, in the order in which the agents try them.
	bootstraps []bootstrap
	renewed    time.Time
	targetLost bool

	mutex sync.Mutex // of the following
	// hub is the hub at which the cluster is registered. renewals counts the renewals of its lease there.
	hub      client.Client
	renewals int
	// applied is the last ManifestWork that the agents have applied.
	applied appliedWork
	// owners are the hubs by whose ManifestWorks the CRD of Klusterlets on the cluster exists.
	owners map[client.Client]bool
	// silent means that the agents do nothing any more.
	silent bool
}

// bootstrap is the bootstrap kubeconfig of a hub.
type bootstrap struct {
	server     string
	kubeconfig []byte
}

// appliedWork is one generation of a ManifestWork of a hub.
type appliedWork struct {
	hub        client.Client
	uid        types.UID
	generation int64
}

// defaultTick keeps tests short. A few clusters with this tick do not overload one machine.
const defaultTick = 250 * time.Millisecond

// Run simulates the agents until the context ends.
func (k *Klusterlet) Run(ctx context.Context) error {
	for {
		if err := k.Pass(ctx); err != nil && ctx.Err() == nil && !IsTransient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(cmp.Or(k.Tick, defaultTick)):
		}
	}
}

// IsTransient reports whether the next pass may succeed: another client has written meanwhile, or a hub does not respond.
func IsTransient(err error) bool {
	_, transient := walk.Transient(err)
	return transient || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// Hub returns the hub at which the cluster is registered: the client of the source, of the target, or nil.
func (k *Klusterlet) Hub() client.Client {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.hub
}

// Silence ends the agents for ever: the cluster is offline.
func (k *Klusterlet) Silence() {
	k.passes.Lock()
	defer k.passes.Unlock()
	k.silent = true
}

// Reach ends that the cluster can't reach the target hub.
func (k *Klusterlet) Reach() {
	k.passes.Lock()
	defer k.passes.Unlock()
	k.Unreachable = false
}

// LoseTarget means that the target hub never answers again, from the next pass on.
func (k *Klusterlet) LoseTarget() {
	k.passes.Lock()
	defer k.passes.Unlock()
	k.targetLost = true
}

// LoseCertificate means that the agents have no certificate of a hub any more, as after the loss of their Secret. They choose a hub again.
func (k *Klusterlet) LoseCertificate() {
	k.passes.Lock()
	defer k.passes.Unlock()
	k.set(func() { k.hub = nil })
}

// Renewals returns how often the cluster has renewed its lease at the hub where it is registered.
func (k *Klusterlet) Renewals() int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.renewals
}

// IsConfiguredBy reports whether the cluster is registered at a hub, and has applied what the hub configures.
func (k *Klusterlet) IsConfiguredBy(hub client.Client) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.hub == hub && k.applied.hub == hub
}

func (k *Klusterlet) set(change func()) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	change()
}

// Pass reads both hubs once, and acts as the agents and the import controllers do.
func (k *Klusterlet) Pass(ctx context.Context) error {
	k.passes.Lock()
	defer k.passes.Unlock()
	if k.silent {
		return nil
	}
	if err := k.pass(ctx); err != nil {
		return fmt.Errorf("klusterlet %s: %w", k.Name, err)
	}
	return nil
}

func (k *Klusterlet) pass(ctx context.Context) error {
	if err := k.start(); err != nil {
		return err
	}
	onSource, err := k.find(ctx, k.Source)
	if err != nil {
		return err
	}
	var onTarget *clusterv1.ManagedCluster
	if !k.targetLost {
		if onTarget, err = k.find(ctx, k.Target); err != nil {
			return err
		}
	}
	if err := k.chooseHub(ctx, onSource, onTarget); err != nil {
		return err
	}
	for _, hub := range []struct {
		Importer
		mc *clusterv1.ManagedCluster
	}{{k.Source, onSource}, {k.Target, onTarget}} {
		if hub.mc == nil {
			continue
		}
		works, err := hub.Configure(ctx, hub.mc)
		if apierrors.IsNotFound(err) && k.hub != hub.Client {
			continue // a hub creates the namespace of a cluster when it accepts it
		}
		if err != nil {
			return err
		}
		if k.hub != hub.Client || !hub.mc.Spec.HubAcceptsClient {
			continue
		}
		if err := k.register(ctx, hub.Client, hub.mc); err != nil {
			return err
		}
		if err := k.apply(hub.Client, works); err != nil {
			return err
		}
		if err := hub.SetApplied(ctx, works.CRDs, works.Klusterlet); err != nil {
			return err
		}
	}
	return nil
}

// start gives the agents the kubeconfig with which the cluster is imported at the source hub.
func (k *Klusterlet) start() error {
	if k.bootstraps != nil {
		return nil
	}
	kubeconfig, err := k.Source.kubeconfig()
	if err != nil {
		return err
	}
	k.bootstraps = []bootstrap{{k.Source.Server, kubeconfig}}
	if k.Join == nil {
		k.set(func() { k.hub = k.Source.Client })
	}
	return nil
}

// chooseHub leaves a hub that does not accept the cluster, and registers it at the first one of its bootstrap kubeconfigs that does.
func (k *Klusterlet) chooseHub(ctx context.Context, onSource, onTarget *clusterv1.ManagedCluster) error {
	accepts := map[string]bool{
		k.Source.Server: onSource != nil && onSource.Spec.HubAcceptsClient,
		k.Target.Server: onTarget != nil && onTarget.Spec.HubAcceptsClient,
	}
	known := func(i Importer) bool {
		return slices.ContainsFunc(k.bootstraps, func(b bootstrap) bool { return b.server == i.Server })
	}
	for _, i := range []Importer{k.Source, k.Target} {
		if k.hub == i.Client && known(i) && accepts[i.Server] {
			return nil
		}
	}
	if k.hub != nil && len(k.bootstraps) == 1 { // it knows no other hub, and stays
		return nil
	}
	for _, b := range k.bootstraps {
		atTarget := b.server == k.Target.Server
		switch {
		case !accepts[b.server] || atTarget && k.Unreachable:
		case atTarget && k.Denied != "":
			k.set(func() { k.hub = nil })
			return k.request(ctx, b.kubeconfig, onTarget)
		case atTarget:
			return k.join(ctx, k.Target, b.kubeconfig)
		default:
			return k.join(ctx, k.Source, b.kubeconfig)
		}
	}
	k.set(func() { k.hub = nil })
	return nil
}

func (k *Klusterlet) join(ctx context.Context, hub Importer, kubeconfig []byte) error {
	k.set(func() { k.hub, k.renewals, k.renewed = nil, 0, time.Time{} })
	if k.Join != nil {
		if err := k.Join(ctx, kubeconfig); err != nil {
			return err
		}
	}
	k.set(func() { k.hub = hub.Client })
	return nil
}

// request creates a CertificateSigningRequest on the target hub by the bootstrap kubeconfig, and denies it as a policy of the hub would.
func (k *Klusterlet) request(ctx context.Context, kubeconfig []byte, mc *clusterv1.ManagedCluster) error {
	csr, err := NewSigningRequest(k.Name+"-"+string(mc.UID)[:8], k.Name)
	if err != nil {
		return err
	}
	if err := k.Target.Get(ctx, client.ObjectKeyFromObject(csr), &certificatesv1.CertificateSigningRequest{}); !apierrors.IsNotFound(err) {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	agent, err := client.New(config, client.Options{Scheme: k.Target.Scheme(), Mapper: k.Target.RESTMapper()})
	if err != nil {
		return err
	}
	if err := agent.Create(ctx, csr); err != nil {
		return err
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Policy", Message: k.Denied}}
	return k.Target.SubResource("approval").Update(ctx, csr)
}

// NewSigningRequest returns the CertificateSigningRequest with which the agent of a cluster requests a certificate. It uses a
// new key and does not keep it.
func NewSigningRequest(name, clusterName string) (*certificatesv1.CertificateSigningRequest, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of %s: %w", clusterName, err)
	}
	const prefix = "system:open-cluster-management:"
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: prefix + clusterName + ":agent", Organization: []string{prefix + clusterName, prefix + "managed-clusters"}},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("create the certificate request of %s: %w", clusterName, err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterNameLabelKey: clusterName}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, nil
}

// own sets whether a hub owns the CRD of Klusterlets on the cluster. A read-only ManifestWork changes no owner.
func (k *Klusterlet) own(hub client.Client, crds *workv1.ManifestWork) {
	if len(crds.Spec.ManifestConfigs) > 0 {
		return
	}
	option := crds.Spec.DeleteOption
	k.set(func() {
		if k.owners == nil {
			k.owners = map[client.Client]bool{}
		}
		k.owners[hub] = option == nil || option.PropagationPolicy != workv1.DeletePropagationPolicyTypeOrphan
	})
}

// Evict simulates the end of the eviction grace period: the work agent deletes what a hub has applied that the cluster has left, unless
// another hub owns it too. It reports whether the klusterlet lives. Without its CRD, the agents do nothing any more.
func (k *Klusterlet) Evict() (lives bool) {
	k.passes.Lock()
	defer k.passes.Unlock()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	owned := false
	for hub, owns := range k.owners {
		owned = owned || owns
		if hub != k.hub {
			delete(k.owners, hub)
		}
	}
	if owned && !k.owners[k.hub] {
		k.silent = true
	}
	return !k.silent
}

// apply takes the bootstrap kubeconfigs of a ManifestWork, unless it is read-only or was applied before.
func (k *Klusterlet) apply(hub client.Client, works Works) error {
	k.own(hub, works.CRDs)
	work := works.Klusterlet
	now := appliedWork{hub, work.UID, work.Generation}
	if k.applied == now {
		return nil
	}
	if len(work.Spec.ManifestConfigs) == 0 {
		configured, err := ConfigurationOf(work)
		if err != nil {
			return err
		}
		k.bootstraps = nil
		for _, kubeconfig := range configured.Kubeconfigs {
			config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
			if err != nil {
				return err
			}
			k.bootstraps = append(k.bootstraps, bootstrap{config.Host, kubeconfig})
		}
	}
	k.set(func() { k.applied = now })
	return nil
}

// find returns nil for a cluster that the hub does not have, or is removing.
func (k *Klusterlet) find(ctx context.Context, c client.Client) (*clusterv1.ManagedCluster, error) {
	mc := &clusterv1.ManagedCluster{}
	err := c.Get(ctx, client.ObjectKey{Name: k.Name}, mc)
	if apierrors.IsNotFound(err) || err == nil && !mc.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return mc, err
}

// register sets the conditions Joined and Available, and renews the lease.
func (k *Klusterlet) register(ctx context.Context, c client.Client, mc *clusterv1.ManagedCluster) error {
	changed := false
	for _, kind := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		changed = meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", Message: "m"}) || changed
	}
	if changed {
		if err := c.Status().Update(ctx, mc); err != nil {
			return err
		}
	}
	if time.Since(k.renewed) < k.RenewEvery {
		return nil
	}
	if err := renew(ctx, c, k.Name); err != nil {
		return err
	}
	k.set(func() { k.renewals, k.renewed = k.renewals+1, time.Now() })
	return nil
}

func renew(ctx context.Context, c client.Client, name string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: cluster.LeaseName}}
	err := c.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, lease)
	}
	if err != nil {
		return err
	}
	return c.Update(ctx, lease)
}
