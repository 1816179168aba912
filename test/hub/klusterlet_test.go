package hub_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub/cluster"
)

// klusterlet plays the agents of a managed cluster, and the import controllers of two hubs. The
// agent takes the bootstrap kubeconfigs that its hub configures. It leaves a hub that does not
// accept it, if it has a kubeconfig of another hub that does, and renews its lease there.
type klusterlet struct {
	name           string
	source, target importer
	// unreachable means that it can't reach the target hub.
	unreachable bool

	mutex sync.Mutex
	at    client.Client
	// servers are those of its bootstrap kubeconfigs, and configuredBy is the hub whose ManifestWork
	// it has applied last.
	servers      []string
	configuredBy client.Client
}

// importer plays the import controller of a hub.
type importer struct {
	client.Client
	// server is the address of the hub.
	server string
	// freezes means that the controller is one of backplane 5.0 or later, which does not change
	// the klusterlet of a cluster whose automatic import is disabled.
	freezes bool
}

// config writes the ManifestWork of a klusterlet, as its KlusterletConfig says, and returns it.
func (i importer) config(ctx context.Context, mc *clusterv1.ManagedCluster) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: mc.Name, Name: cluster.KlusterletWork(mc.Name)}}
	err := i.Get(ctx, client.ObjectKeyFromObject(work), work)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	exists, before := err == nil, work.DeepCopy()
	_, disabled := mc.Annotations[cluster.AnnotationNoAutoImport]
	disabled = disabled && i.freezes
	if !disabled || !exists {
		if work.Spec.Workload.Manifests, err = i.manifests(ctx, mc); err != nil {
			return nil, err
		}
	}
	work.Spec.ManifestConfigs = nil
	if disabled {
		work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "secrets", Namespace: "open-cluster-management-agent", Name: "all"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
		}}
	}
	switch {
	case !exists:
		return work, i.Create(ctx, work)
	case equality.Semantic.DeepEqual(before.Spec, work.Spec):
		return work, nil
	}
	return work, i.Update(ctx, work)
}

// manifests are the bootstrap secrets of the hub, and of those that the KlusterletConfig adds.
func (i importer) manifests(ctx context.Context, mc *clusterv1.ManagedCluster) ([]workv1.Manifest, error) {
	own, err := cluster.Kubeconfig(i.server, nil, "token of "+i.server)
	if err != nil {
		return nil, err
	}
	config := cluster.KlusterletConfig(mc.Annotations[cluster.AnnotationKlusterletConfig])
	if config.GetName() != "" {
		err := i.Get(ctx, client.ObjectKeyFromObject(config), config)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
	}
	others, _, _ := unstructured.NestedSlice(config.Object, "spec", "multipleHubsConfig", "bootstrapKubeConfigs", "localSecretsConfig", "kubeConfigSecrets")
	if len(others) == 0 {
		return []workv1.Manifest{bootstrapManifest("bootstrap-hub-kubeconfig", own)}, nil
	}
	manifests := []workv1.Manifest{bootstrapManifest("bootstrap-hub-kubeconfig-current-hub", own)}
	for _, other := range others {
		name, _, _ := unstructured.NestedString(other.(map[string]any), "name")
		secret := &corev1.Secret{}
		if err := i.Get(ctx, client.ObjectKey{Namespace: bootstrapNamespace, Name: name}, secret); err != nil {
			return nil, err
		}
		manifests = append(manifests, bootstrapManifest(name, secret.Data["kubeconfig"]))
	}
	return manifests, nil
}

func bootstrapManifest(name string, kubeconfig []byte) workv1.Manifest {
	text := base64.StdEncoding.EncodeToString(kubeconfig)
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"namespace":"open-cluster-management-agent"},"data":{"kubeconfig":%q}}`, name, text)}}
}

// setApplied plays the work agent of a cluster.
func (i importer) setApplied(ctx context.Context, work *workv1.ManifestWork) error {
	if !meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
		Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: work.Generation,
	}) {
		return nil
	}
	return i.Status().Update(ctx, work)
}

// tick is how often a klusterlet acts.
const tick = 50 * time.Millisecond

// play runs klusterlets until the test ends.
func play(t *testing.T, all ...*klusterlet) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, k := range all {
		k.at = k.source.Client
		k.servers = []string{k.source.server}
		group.Go(func() {
			for ctx.Err() == nil {
				// A conflict with an agent is met again in the next pass.
				if err := k.pass(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
					t.Errorf("klusterlet %s: %v", k.name, err)
					return
				}
				pause(ctx, tick)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
}

// hub is where the klusterlet is registered: the source, the target, or none.
func (k *klusterlet) hub() client.Client {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.at
}

// isConfiguredBy reports whether the klusterlet is at a hub, and has applied what the hub configures.
func (k *klusterlet) isConfiguredBy(hub client.Client) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.at == hub && k.configuredBy == hub
}

func (k *klusterlet) pass(ctx context.Context) error {
	onSource, err := k.read(ctx, k.source)
	if err != nil {
		return err
	}
	onTarget, err := k.read(ctx, k.target)
	if err != nil {
		return err
	}
	takes := func(i importer, mc *clusterv1.ManagedCluster) bool {
		return mc != nil && mc.Spec.HubAcceptsClient && slices.Contains(k.servers, i.server)
	}
	k.mutex.Lock()
	switch {
	case k.at == k.source.Client && takes(k.source, onSource), k.at == k.target.Client && takes(k.target, onTarget):
	case k.at != nil && len(k.servers) == 1: // it knows no other hub, and stays
	case takes(k.source, onSource):
		k.at = k.source.Client
	case takes(k.target, onTarget) && !k.unreachable:
		k.at = k.target.Client
	default:
		k.at = nil
	}
	at := k.at
	k.mutex.Unlock()
	for _, hub := range []struct {
		importer
		mc *clusterv1.ManagedCluster
	}{{k.source, onSource}, {k.target, onTarget}} {
		if hub.mc == nil {
			continue
		}
		work, err := hub.config(ctx, hub.mc)
		if err != nil {
			return err
		}
		if at != hub.Client || !hub.mc.Spec.HubAcceptsClient {
			continue
		}
		if err := k.register(ctx, at, hub.mc); err != nil {
			return err
		}
		if err := k.configure(work); err != nil {
			return err
		}
		k.mutex.Lock()
		k.configuredBy = at
		k.mutex.Unlock()
		if err := hub.setApplied(ctx, work); err != nil {
			return err
		}
	}
	return nil
}

// configure takes the bootstrap kubeconfigs of a ManifestWork, unless it is read-only.
func (k *klusterlet) configure(work *workv1.ManifestWork) error {
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

func (k *klusterlet) read(ctx context.Context, c client.Client) (*clusterv1.ManagedCluster, error) {
	mc := &clusterv1.ManagedCluster{}
	err := c.Get(ctx, client.ObjectKey{Name: k.name}, mc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return mc, err
}

// register is Joined and Available, and renews the lease.
func (k *klusterlet) register(ctx context.Context, c client.Client, mc *clusterv1.ManagedCluster) error {
	changed := false
	for _, kind := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		changed = meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", Message: "m"}) || changed
	}
	if changed {
		if err := c.Status().Update(ctx, mc); err != nil {
			return err
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: k.name, Name: cluster.LeaseName}}
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

// names of klusterlets, sorted.
func names(all []*klusterlet) []string {
	var list []string
	for _, k := range all {
		list = append(list, k.name)
	}
	slices.Sort(list)
	return list
}
