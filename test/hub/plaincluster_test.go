package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	own "github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/controlplane"
	simulation "github.com/godwit-dev/godwit/test/hub"
)

// startPlainSource starts a second hub without the import controller.
var startPlainSource = sync.OnceValue(func() (err error) {
	ctx := context.Background()
	if startedPlanes.source, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return err
	}
	return simulation.InstallCRDs(ctx, startedPlanes.source.Config(), "klusterletconfigs.config.open-cluster-management.io")
})

// plainCluster is a cluster of a hub without the import controller, and another such hub. The test plays its operator and its agents, and the
// controllers of the hubs. Nothing of add-ons is on the hubs.
type plainCluster struct {
	t    *testing.T
	name string
	c    client.Client
	// source and target are the hubs.
	source, target *plainHub
	spec           operatorv1.KlusterletSpec
	// unreachable means that the cluster can't reach the target.
	unreachable atomic.Bool
	works       workAgent
}

// plainHub is a hub as the cluster and as the test reach it.
type plainHub struct {
	config *rest.Config
	c      client.Client
}

// newPlainCluster makes a cluster that is registered at the source.
func newPlainCluster(t *testing.T) *plainCluster {
	t.Helper()
	if err := errors.Join(startLostPlanes(), startPlainSource()); err != nil {
		t.Fatal(err)
	}
	hubOf := func(cp *controlplane.ControlPlane) *plainHub {
		return &plainHub{cp.Config(), uncachedClient(t, cp.Config())}
	}
	p := &plainCluster{t: t, name: newName(), c: uncachedClient(t, startedPlanes.cluster.Config()), source: hubOf(startedPlanes.source), target: hubOf(startedPlanes.hub)}
	p.works = workAgent{c: p.c}
	p.clear()
	t.Cleanup(p.clear)
	for _, h := range []*plainHub{p.source, p.target} {
		if err := h.c.Get(t.Context(), client.ObjectKey{Name: cluster.AccountNamespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Fatalf("the hub has namespace %s, %v: the test proves nothing", cluster.AccountNamespace, err)
		}
	}
	k := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: own.Name}, Spec: operatorv1.KlusterletSpec{
		ClusterName: p.name, Namespace: agentsNamespace, RegistrationConfiguration: &operatorv1.RegistrationConfiguration{
			FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterClaim", Mode: operatorv1.FeatureGateModeTypeDisable}},
		},
	}}
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60}}
	if err := errors.Join(
		client.IgnoreAlreadyExists(p.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentsNamespace}})),
		p.c.Create(t.Context(), k), p.c.Create(t.Context(), p.source.secret(t, own.OwnSecret, "expired")), p.c.Create(t.Context(), p.source.secret(t, own.HubSecret, "")),
		p.source.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}), p.source.c.Create(t.Context(), mc), renewAt(t.Context(), p.source.c, mc),
	); err != nil {
		t.Fatal(err)
	}
	p.spec = k.Spec
	return p
}

// clear removes what a cluster of the API server has left.
func (p *plainCluster) clear() {
	ctx := context.WithoutCancel(p.t.Context())
	all := []client.Object{&operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: own.Name}}, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: own.RoleName}}}
	for _, name := range []string{own.OwnSecret, own.HubSecret, own.SourceSecret, own.TargetSecret} {
		all = append(all, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentsNamespace, Name: name}})
	}
	for _, o := range all {
		if err := client.IgnoreNotFound(p.c.Delete(ctx, o)); err != nil {
			p.t.Error(err)
		}
	}
}

// secret returns a Secret of the agents with a kubeconfig of the hub.
func (h *plainHub) secret(t *testing.T, name, token string) *corev1.Secret {
	t.Helper()
	kubeconfig, err := cluster.Kubeconfig(h.config.Host, h.config.CAData, token)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentsNamespace, Name: name}, Data: map[string][]byte{cluster.KubeconfigKey: kubeconfig}}
}

// play plays the agents and the controllers until the returned function is called.
func (p *plainCluster) play() (stop func()) {
	p.t.Helper()
	return playing(p.t, func(ctx context.Context) error {
		return errors.Join(operate(ctx, p.c), p.control(ctx), p.agents(ctx))
	})
}

// control plays the controllers of the hubs, which make the namespace of a cluster that is accepted.
func (p *plainCluster) control(ctx context.Context) error {
	for _, h := range []*plainHub{p.source, p.target} {
		mc := &clusterv1.ManagedCluster{}
		if err := h.c.Get(ctx, client.ObjectKey{Name: p.name}, mc); err != nil || !mc.Spec.HubAcceptsClient {
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if err := client.IgnoreAlreadyExists(h.c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}})); err != nil {
			return err
		}
	}
	return nil
}

// registered returns the hub at which the cluster is registered.
func (p *plainCluster) registered(ctx context.Context) (*plainHub, *corev1.Secret, error) {
	s := &corev1.Secret{}
	if err := p.c.Get(ctx, client.ObjectKey{Namespace: agentsNamespace, Name: own.HubSecret}, s); err != nil {
		return nil, nil, err
	}
	h, err := p.hubIn(s)
	return h, s, err
}

// hubIn returns the hub of the kubeconfig in a Secret.
func (p *plainCluster) hubIn(s *corev1.Secret) (*plainHub, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data[cluster.KubeconfigKey])
	if err != nil {
		return nil, err
	}
	for _, h := range []*plainHub{p.source, p.target} {
		if h.config.Host == config.Host {
			return h, nil
		}
	}
	return nil, fmt.Errorf("no hub is at %s", config.Host)
}

// agents plays the registration agent and the work agent: they renew the lease and apply works at a hub that accepts the cluster. From another one they go
// to the first hub of their bootstrap kubeconfigs that accepts the cluster.
func (p *plainCluster) agents(ctx context.Context) error {
	h, s, err := p.registered(ctx)
	if err != nil {
		return err
	}
	mc := &clusterv1.ManagedCluster{}
	err = h.c.Get(ctx, client.ObjectKey{Name: p.name}, mc)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && mc.Spec.HubAcceptsClient {
		return errors.Join(renewAt(ctx, h.c, mc), p.works.pass(ctx, h.c, p.name))
	}
	k := &operatorv1.Klusterlet{}
	if err := p.c.Get(ctx, client.ObjectKey{Name: own.Name}, k); err != nil {
		return err
	}
	names, _ := own.KnowsSeveral(k)
	for _, name := range names {
		bootstrap := &corev1.Secret{}
		if err := p.c.Get(ctx, client.ObjectKey{Namespace: agentsNamespace, Name: name}, bootstrap); err != nil {
			return err
		}
		if changed, err := p.change(ctx, h, s, bootstrap); err != nil || changed {
			return err
		}
	}
	return nil
}

// change registers the cluster at the hub of a bootstrap kubeconfig, if that is another hub and accepts the cluster.
func (p *plainCluster) change(ctx context.Context, from *plainHub, s, bootstrap *corev1.Secret) (bool, error) {
	h, err := p.hubIn(bootstrap)
	if err != nil || h == from || h == p.target && p.unreachable.Load() {
		return false, err
	}
	mc := &clusterv1.ManagedCluster{}
	if err := h.c.Get(ctx, client.ObjectKey{Name: p.name}, mc); err != nil || !mc.Spec.HubAcceptsClient {
		return false, client.IgnoreNotFound(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(bootstrap.Data[cluster.KubeconfigKey])
	if err != nil {
		return false, err
	}
	issued, err := requestAt(ctx, h.c, p.name, p.name+"-"+string(mc.UID)[:8], config)
	if err != nil || !issued {
		return false, err
	}
	s.Data = h.secret(p.t, s.Name, "").Data
	return true, p.c.Update(ctx, s)
}

// mustBeAt fails the test unless the cluster is registered at one hub, and nothing of the migration is left but what the work agent evicts later.
func (p *plainCluster) mustBeAt(h, other *plainHub) {
	p.t.Helper()
	ctx := p.t.Context()
	at, _, err := p.registered(ctx)
	if err != nil || at != h {
		p.t.Errorf("the cluster is at another hub, %v", err)
	}
	mc, k, bootstrap := &clusterv1.ManagedCluster{}, &operatorv1.Klusterlet{}, &corev1.Secret{}
	if err := errors.Join(h.c.Get(ctx, client.ObjectKey{Name: p.name}, mc), p.c.Get(ctx, client.ObjectKey{Name: own.Name}, k),
		p.c.Get(ctx, client.ObjectKey{Namespace: agentsNamespace, Name: own.OwnSecret}, bootstrap)); err != nil {
		p.t.Fatal(err)
	}
	if !mc.Spec.HubAcceptsClient || !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionJoined) || len(mc.Labels)+len(mc.Annotations) > 0 {
		p.t.Errorf("ManagedCluster has labels %v, annotations %v, accepts %v, conditions %+v", mc.Labels, mc.Annotations, mc.Spec.HubAcceptsClient, mc.Status.Conditions)
	}
	if err := other.c.Get(ctx, client.ObjectKey{Name: p.name}, mc); !apierrors.IsNotFound(err) {
		p.t.Errorf("the other hub has ManagedCluster %s: %v", p.name, err)
	}
	// What is left of bootstrapKubeConfigs is its default.
	if r := k.Spec.RegistrationConfiguration; r != nil && r.BootstrapKubeConfigs.Type == operatorv1.None {
		r.BootstrapKubeConfigs = operatorv1.BootstrapKubeConfigs{}
	}
	p.spec.RegistrationConfiguration.BootstrapKubeConfigs = operatorv1.BootstrapKubeConfigs{}
	if diff := difference(p.spec, k.Spec); diff != "" {
		p.t.Errorf("the Klusterlet (-before +after):\n%s", diff)
	}
	if in, err := p.hubIn(bootstrap); err != nil || in != h {
		p.t.Errorf("the bootstrap kubeconfig is for another hub, %v", err)
	}
	for _, one := range []*plainHub{h, other} {
		for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}} {
			if err := one.c.List(ctx, list, client.HasLabels{"godwit.dev/shared-by-migrations"}); err != nil || meta.LenList(list) > 0 {
				p.t.Errorf("%d objects of %T are left, %v", meta.LenList(list), list, err)
			}
		}
		works := &workv1.ManifestWorkList{}
		if err := one.c.List(ctx, works, client.InNamespace(p.name)); err != nil || len(works.Items) > 0 {
			p.t.Errorf("%d ManifestWorks are left, %v", len(works.Items), err)
		}
	}
}

// isOrphan reports whether an object of a resource stays when a work goes.
func isOrphan(work *workv1.ManifestWork, resource, namespace, name string) bool {
	option := work.Spec.DeleteOption
	return option != nil && option.SelectivelyOrphan != nil && slices.ContainsFunc(option.SelectivelyOrphan.OrphaningRules, func(r workv1.OrphaningRule) bool {
		return r.Resource == resource && r.Namespace == namespace && r.Name == name
	})
}
