package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub/cluster"
)

// klusterlet plays the agent of a managed cluster, and what an import controller does for
// it. The agent leaves a hub that does not accept it, takes the first of its bootstrap
// kubeconfigs whose hub does, and renews its lease there.
type klusterlet struct {
	name           string
	source, target client.Client
	// unreachable means that it can't reach the target hub.
	unreachable bool

	mutex  sync.Mutex
	at     client.Client
	config string
	passes int
}

// tick is how often a klusterlet acts.
const tick = 50 * time.Millisecond

// play runs klusterlets until the test ends.
func play(t *testing.T, all ...*klusterlet) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, k := range all {
		k.at = k.source
		group.Go(func() {
			for ctx.Err() == nil {
				// A conflict with an agent is met again in the next pass.
				if err := k.pass(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
					t.Errorf("klusterlet %s: %v", k.name, err)
					return
				}
				time.Sleep(tick)
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

func (k *klusterlet) pass(ctx context.Context) error {
	onSource, err := k.read(ctx, k.source)
	if err != nil {
		return err
	}
	hasTarget := false
	if onSource != nil {
		config := onSource.Annotations[cluster.AnnotationKlusterletConfig]
		hasTarget = strings.HasPrefix(config, "migration-")
		if config != k.config {
			if err := k.writeWork(ctx, k.source, config); err != nil {
				return err
			}
			k.config = config
		}
	}
	onTarget, err := k.read(ctx, k.target)
	if err != nil {
		return err
	}
	accepts := func(mc *clusterv1.ManagedCluster) bool { return mc != nil && mc.Spec.HubAcceptsClient }
	toTarget := accepts(onTarget) && hasTarget && !k.unreachable
	k.mutex.Lock()
	switch {
	case k.at == k.source && accepts(onSource), k.at == k.target && accepts(onTarget):
	case accepts(onSource):
		k.at = k.source
	case toTarget:
		k.at = k.target
	default:
		k.at = nil
	}
	at := k.at
	k.mutex.Unlock()
	switch at {
	case k.source:
		return k.register(ctx, k.source, onSource)
	case k.target:
		if err := k.register(ctx, k.target, onTarget); err != nil {
			return err
		}
		return k.writeWork(ctx, k.target, "own")
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

// writeWork writes the ManifestWork of the klusterlet for a configuration, and applies it.
func (k *klusterlet) writeWork(ctx context.Context, c client.Client, config string) error {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: k.name, Name: cluster.KlusterletWork(k.name)}}
	err := c.Get(ctx, client.ObjectKeyFromObject(work), work)
	if err == nil && config == "own" {
		return nil
	}
	k.passes++
	content := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"config-%d"},"data":{"config":%q}}`, k.passes, config)
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: content}}}
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, work)
	case err == nil:
		err = c.Update(ctx, work)
	}
	if err != nil {
		return err
	}
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: work.Generation})
	return c.Status().Update(ctx, work)
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
