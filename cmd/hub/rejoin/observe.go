package rejoin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/reach"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/cmd/hub/target"
)

// Rejoin brings one cluster to a hub.
type Rejoin struct {
	// Cluster is the name of the cluster, at the lost hub and at the target.
	Cluster string
	// Own is the client of the cluster, and Target that of the hub. Neither reads from a cache.
	Own, Target client.Client
	// Namespace of the target hub has the bootstrap account. It exists.
	Namespace string
	// Address is how the cluster reaches the target hub. A hub with the import controller has its own, which replaces it.
	Address clusterv1.ClientConfig
	// OnEvictedWorks is what becomes of what the lost hub has applied.
	OnEvictedWorks api.EvictedWorksPolicy
	Clock          clock.PassiveClock
	// Poll is the time between two passes that wait; a second unless set.
	Poll time.Duration
	// Progress is called with each step, and with what it waits for; empty if it waits for nothing.
	Progress func(s Step, waits string)

	leases  cluster.Leases
	arrived bool
}

// Observe reads the cluster and the target hub.
func (r *Rejoin) Observe(ctx context.Context) (Facts, error) {
	f := Facts{Cluster: r.Cluster, Address: r.Address, OnEvictedWorks: r.OnEvictedWorks, Now: r.Clock.Now()}
	// First the ManagedCluster: an agent that registers between both reads has stored its certificate before the hub shows that it has joined.
	var err error
	if f.Managed, err = (cluster.Hub{Client: r.Target}).Find(ctx, r.Cluster); err != nil {
		return f, fmt.Errorf("read ManagedCluster %s of the target hub: %w", r.Cluster, err)
	}
	if err = r.observeCluster(ctx, &f); err == nil && f.Klusterlet != nil {
		err = r.observeTarget(ctx, &f)
	}
	return f, err
}

// Ask observes, and asks for some seconds whether the lost hub answers, and whether the cluster would verify the target hub. What the import controller
// will give it is not known before it has.
func (r *Rejoin) Ask(ctx context.Context) (Facts, error) {
	f, err := r.Observe(ctx)
	if err != nil || f.isRegistered() {
		return f, err
	}
	if f.Agent.Server != "" {
		f.Answers = Answers(ctx, f.Agent.Kubeconfig)
	}
	if !f.Imports || f.Imported != nil {
		f.Untrusted, f.Unproven = reach.Address{ClientConfig: f.Address, Hub: f.Address.URL, Direct: true}.Check(ctx)
	}
	return f, nil
}

// observeCluster reads the cluster. Without a Klusterlet it reads nothing else.
func (r *Rejoin) observeCluster(ctx context.Context, f *Facts) error {
	k := &operatorv1.Klusterlet{}
	err := r.Own.Get(ctx, client.ObjectKey{Name: klusterlet.Name}, k)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Klusterlet %s of %s: %w", klusterlet.Name, r.Cluster, err)
	}
	f.Klusterlet = k
	if f.Record, err = recordOf(k); err != nil {
		return err
	}
	system := &corev1.Namespace{}
	if err := r.Own.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("read namespace %s of %s: %w", metav1.NamespaceSystem, r.Cluster, err)
	}
	f.UID = string(system.UID)
	namespace := klusterlet.NamespaceOf(k)
	own, err := r.secret(ctx, namespace, klusterlet.OwnSecret)
	if err != nil {
		return err
	}
	f.Bootstrap = own.Data[cluster.KubeconfigKey]
	if f.Agent, err = r.agent(ctx, namespace); err != nil {
		return err
	}
	works := &workv1.AppliedManifestWorkList{}
	if err := r.Own.List(ctx, works); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("list the AppliedManifestWorks of %s: %w", r.Cluster, err)
	}
	f.Works = works.Items
	f.Leftovers, err = r.leftovers(ctx, f)
	return err
}

// agentClusterKey of the Secret with the certificate of the agent has the name of the cluster.
const agentClusterKey = "cluster-name"

// secret reads a Secret of the agents. It is empty if it does not exist.
func (r *Rejoin) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := client.IgnoreNotFound(r.Own.Get(ctx, client.ObjectKeyFromObject(s), s)); err != nil {
		return nil, fmt.Errorf("read Secret %s/%s of %s: %w", namespace, name, r.Cluster, err)
	}
	return s, nil
}

// agent reads as what the agent is registered.
func (r *Rejoin) agent(ctx context.Context, namespace string) (Agent, error) {
	s, err := r.secret(ctx, namespace, klusterlet.HubSecret)
	if err != nil {
		return Agent{}, err
	}
	a := Agent{Cluster: string(s.Data[agentClusterKey])}
	if len(s.Data[cluster.KubeconfigKey]) == 0 {
		return a, nil
	}
	if a.Kubeconfig, err = (klusterlet.Facts{Hub: s.Data[cluster.KubeconfigKey]}).Bootstrap(""); err != nil {
		return a, cluster.Fail(cluster.ReasonKlusterlet, "Secret %s/%s of %s can't be read: %v", namespace, s.Name, r.Cluster, err)
	}
	if config, err := clientcmd.RESTConfigFromKubeConfig(a.Kubeconfig); err == nil {
		a.Server = config.Host
	}
	return a, nil
}

// remains are the objects that a migration may have left on the cluster.
func (r *Rejoin) remains(f *Facts) []client.Object {
	all := []client.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: klusterlet.RoleName}}}
	for _, name := range append([]string{klusterlet.SourceSecret, klusterlet.TargetSecret}, f.Record.Secrets...) {
		if name != klusterlet.OwnSecret {
			all = append(all, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: klusterlet.NamespaceOf(f.Klusterlet), Name: name}})
		}
	}
	return all
}

func (r *Rejoin) leftovers(ctx context.Context, f *Facts) ([]string, error) {
	var names []string
	for _, o := range r.remains(f) {
		err := r.Own.Get(ctx, client.ObjectKeyFromObject(o), o)
		switch {
		case err == nil:
			names = append(names, cluster.Name(r.Own, o))
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read %s of %s: %w", cluster.Name(r.Own, o), r.Cluster, err)
		}
	}
	return names, nil
}

// observeTarget reads what the target hub has beside the ManagedCluster.
func (r *Rejoin) observeTarget(ctx context.Context, f *Facts) error {
	h := r.hub(*f)
	var err error
	if f.Imports, err = h.Imports(); err == nil && f.Imports {
		err = r.observeImport(ctx, f)
	}
	if err != nil {
		return err
	}
	if !f.isRegistered() && !f.bootstrap().ofTarget {
		if err := h.CheckRequests(ctx, r.Cluster); err != nil {
			return err
		}
	}
	if f.Migration() == "" || f.Managed.Spec.HubAcceptsClient {
		return nil
	}
	received, err := h.Owned(ctx, r.Cluster)
	if err != nil {
		return fmt.Errorf("list what a migration has created for %s: %w", r.Cluster, err)
	}
	for _, o := range received {
		f.Received = append(f.Received, cluster.Name(r.Target, o))
	}
	return nil
}

// observeImport reads what the import controller has made for the cluster. It has its own address of the hub.
func (r *Rejoin) observeImport(ctx context.Context, f *Facts) error {
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.Cluster, Name: resource.ImportSecret(r.Cluster)}
	if err := r.Target.Get(ctx, key, s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read Secret %s of the target hub: %w", key, err)
	}
	kubeconfig, err := importedIn(s.Data[importManifest])
	if err != nil || kubeconfig == nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig in Secret %s of the target hub: %w", key, err)
	}
	f.Imported = kubeconfig
	r.Address = clusterv1.ClientConfig{URL: config.Host, CABundle: config.CAData}
	f.Address = r.Address
	return nil
}

// hub returns the target hub. Its account is of this cluster alone.
func (r *Rejoin) hub(f Facts) target.Hub {
	sum := sha256.Sum256([]byte(f.UID))
	return target.Hub{
		Hub:     cluster.Hub{Client: r.Target, UID: f.Mark(), Kinds: &cluster.Kinds{}, Confirmations: &cluster.Confirmations{}},
		Adopts:  true,
		Account: types.NamespacedName{Namespace: r.Namespace, Name: "godwit-rejoin-" + hex.EncodeToString(sum[:8])},
	}
}
