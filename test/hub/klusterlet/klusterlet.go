// Package klusterlet plays managed clusters and the import controllers of two hubs, for tests and the demo
// of moves between hubs. No process of Open Cluster Management runs.
//
// Read importer.go, then klusterlet.go.
package klusterlet

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
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
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/walk"
)

// Klusterlet plays the agents of a managed cluster. They take the bootstrap kubeconfigs that their hub
// configures, leave a hub that does not accept the cluster if another one does, and renew its lease there.
type Klusterlet struct {
	Name           string
	Source, Target Importer
	// Unreachable means that the cluster can't reach the target hub.
	Unreachable bool
	// Denied is why the target hub denies the CertificateSigningRequest of the cluster; empty if it
	// approves it.
	Denied string
	// Tick is how often the agents act; 250 ms unless set.
	Tick time.Duration

	mutex sync.Mutex
	// at is where the cluster is registered, and configuredBy is the hub whose ManifestWork the
	// agents have applied last.
	at, configuredBy client.Client
	// servers are those of its bootstrap kubeconfigs. Only Run has them.
	servers []string
}

// defaultTick is short, and few enough requests for some clusters on one machine.
const defaultTick = 250 * time.Millisecond

// Run registers the cluster at the source hub, and plays its agents until the context ends.
func (k *Klusterlet) Run(ctx context.Context) error {
	k.servers = []string{k.Source.Server}
	k.mutex.Lock()
	k.at = k.Source.Client
	k.mutex.Unlock()
	for {
		// The next pass meets a conflict with an agent again, and a hub that is away.
		err := k.pass(ctx)
		_, away := walk.Transient(err)
		if err != nil && ctx.Err() == nil && !away && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("klusterlet %s: %w", k.Name, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(cmp.Or(k.Tick, defaultTick)):
		}
	}
}

// Hub is where the cluster is registered: the client of the source, of the target, or nil.
func (k *Klusterlet) Hub() client.Client {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.at
}

// IsConfiguredBy reports whether the cluster is registered at a hub, and has applied what the hub configures.
func (k *Klusterlet) IsConfiguredBy(hub client.Client) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.at == hub && k.configuredBy == hub
}

func (k *Klusterlet) pass(ctx context.Context) error {
	onSource, err := k.read(ctx, k.Source)
	if err != nil {
		return err
	}
	onTarget, err := k.read(ctx, k.Target)
	if err != nil {
		return err
	}
	at, err := k.move(ctx, onSource, onTarget)
	if err != nil {
		return err
	}
	for _, hub := range []struct {
		Importer
		mc *clusterv1.ManagedCluster
	}{{k.Source, onSource}, {k.Target, onTarget}} {
		if hub.mc == nil {
			continue
		}
		work, err := hub.Configure(ctx, hub.mc)
		if err != nil {
			return err
		}
		if at != hub.Client || !hub.mc.Spec.HubAcceptsClient {
			continue
		}
		if err := k.register(ctx, at, hub.mc); err != nil {
			return err
		}
		if err := k.apply(work); err != nil {
			return err
		}
		k.mutex.Lock()
		k.configuredBy = at
		k.mutex.Unlock()
		if err := hub.SetApplied(ctx, work); err != nil {
			return err
		}
	}
	return nil
}

// move leaves a hub that does not accept the cluster.
func (k *Klusterlet) move(ctx context.Context, onSource, onTarget *clusterv1.ManagedCluster) (client.Client, error) {
	takes := func(i Importer, mc *clusterv1.ManagedCluster) bool {
		return mc != nil && mc.Spec.HubAcceptsClient && slices.Contains(k.servers, i.Server)
	}
	stays := k.at == k.Source.Client && takes(k.Source, onSource) || k.at == k.Target.Client && takes(k.Target, onTarget)
	next := k.at
	switch {
	case stays:
	case k.at != nil && len(k.servers) == 1: // it knows no other hub, and stays
	case takes(k.Source, onSource):
		next = k.Source.Client
	case takes(k.Target, onTarget) && k.Denied != "":
		next = nil
		if err := k.request(ctx, onTarget); err != nil {
			return nil, err
		}
	case takes(k.Target, onTarget) && !k.Unreachable:
		next = k.Target.Client
	default:
		next = nil
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.at = next
	return next, nil
}

// request makes a CertificateSigningRequest on the target hub, and denies it as a policy there does.
func (k *Klusterlet) request(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	csr, err := NewSigningRequest(k.Name+"-"+string(mc.UID)[:8], k.Name)
	if err != nil {
		return err
	}
	if err := k.Target.Create(ctx, csr); err != nil {
		return err // it exists
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Policy", Message: k.Denied}}
	return k.Target.SubResource("approval").Update(ctx, csr)
}

// NewSigningRequest returns what the agent of a cluster creates to get a certificate, with a new key that
// nothing keeps.
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

// apply takes the bootstrap kubeconfigs of a ManifestWork, unless it is read-only.
func (k *Klusterlet) apply(work *workv1.ManifestWork) error {
	if len(work.Spec.ManifestConfigs) > 0 {
		return nil
	}
	k.servers = nil
	for _, m := range work.Spec.Workload.Manifests {
		secret := &corev1.Secret{}
		if err := json.Unmarshal(m.Raw, secret); err != nil {
			return err
		}
		config, err := clientcmd.Load(secret.Data["kubeconfig"])
		if err != nil {
			return err
		}
		k.servers = append(k.servers, config.Clusters[config.Contexts[config.CurrentContext].Cluster].Server)
	}
	return nil
}

func (k *Klusterlet) read(ctx context.Context, c client.Client) (*clusterv1.ManagedCluster, error) {
	mc := &clusterv1.ManagedCluster{}
	err := c.Get(ctx, client.ObjectKey{Name: k.Name}, mc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return mc, err
}

// register is Joined and Available, and renews the lease.
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
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: k.Name, Name: cluster.LeaseName}}
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
