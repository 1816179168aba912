package hub_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	own "github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/rejoin"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/fault"
	simulation "github.com/godwit-dev/godwit/test/hub"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// planes are the API server of a cluster with a klusterlet, and those of hubs without the import controller.
type planes struct{ cluster, hub, source *controlplane.ControlPlane }

// startedPlanes are those that the tests of lost clusters share. Such a test runs alone, since an API server has one Klusterlet.
var startedPlanes planes

var startLostPlanes = sync.OnceValue(func() (err error) {
	ctx, p := context.Background(), &startedPlanes
	if p.cluster, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return err
	}
	if p.hub, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return err
	}
	crds, err := ocm.CRDs(ctx, "operator/v1/*_klusterlets.crd.yaml", "work/v1/*_appliedmanifestworks.crd.yaml")
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, p.cluster.Config(), crds...); err != nil {
		return err
	}
	if _, err := p.cluster.StartControllerManager(ctx, "--controllers=garbage-collector-controller"); err != nil {
		return err
	}
	return simulation.InstallCRDs(ctx, p.hub.Config(), "klusterletconfigs.config.open-cluster-management.io")
})

// stop ends the planes, if a test has started them.
func (p planes) stop() error {
	var errs []error
	for _, cp := range []*controlplane.ControlPlane{p.cluster, p.hub, p.source} {
		if cp != nil {
			errs = append(errs, cp.Stop())
		}
	}
	return errors.Join(errs...)
}

const (
	agentsNamespace   = "open-cluster-management-agent"
	accountsNamespace = "godwit-migrations"
	// lostServer has a port on which no process listens.
	lostServer = "https://127.0.0.1:1"
)

// lostCluster is a cluster whose hub is lost, and a target hub. The test plays its operator and its agents.
type lostCluster struct {
	t      *testing.T
	planes planes
	name   string
	c, hub client.Client
	// importer of the target hub; nil on a hub without the import controller.
	importer *klusterlet.Importer
	// kept are objects that must stay, without an owner.
	kept     []client.Object
	spec     operatorv1.KlusterletSpec
	requests int
	// withoutCA means that the user gives no CA of the target hub.
	withoutCA bool
	// registered means that the agents are at the target hub.
	registered atomic.Bool
}

// uncachedClient has a mapper of its own: the shared one is for the API server of another hub.
func uncachedClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	config.QPS = -1
	clients, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, clients)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: hubScheme(), HTTPClient: clients, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newLostCluster makes the klusterlet of a cluster, which is registered at a hub that does not answer, and works of that hub. A former
// cluster of the API server is removed.
func newLostCluster(t *testing.T) *lostCluster {
	t.Helper()
	if err := startLostPlanes(); err != nil {
		t.Fatal(err)
	}
	p := startedPlanes
	l := &lostCluster{t: t, planes: p, name: newName(), c: uncachedClient(t, p.cluster.Config()), hub: uncachedClient(t, p.hub.Config())}
	for _, o := range []client.Object{
		&operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: own.Name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentsNamespace, Name: own.OwnSecret}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentsNamespace, Name: own.HubSecret}},
	} {
		if err := client.IgnoreNotFound(l.c.Delete(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	l.removeWorks()
	for c, objects := range map[client.Client][]client.Object{
		l.c:   {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentsNamespace}}},
		l.hub: {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accountsNamespace}}},
	} {
		for _, o := range objects {
			if err := c.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
	}
	k := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: own.Name}, Spec: operatorv1.KlusterletSpec{
		ClusterName: l.name, Namespace: agentsNamespace, RegistrationConfiguration: &operatorv1.RegistrationConfiguration{
			FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterClaim", Mode: operatorv1.FeatureGateModeTypeDisable}},
		},
	}}
	l.create(k)
	l.spec = k.Spec
	l.create(l.secret(own.OwnSecret, lostServer, "expired"))
	l.create(l.secret(own.HubSecret, lostServer, ""))
	l.kept = append(l.kept, l.work(k, "workload", lostServer), l.klusterletWork(k))
	return l
}

// removeWorks removes the works of a former cluster of the API server.
func (l *lostCluster) removeWorks() {
	l.t.Helper()
	for deadline := time.Now().Add(patience); len(l.works()) > 0; pause(l.t.Context(), 20*time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("works %v of a former cluster are left", l.works())
		}
		list := &workv1.AppliedManifestWorkList{}
		if err := errors.Join(l.c.DeleteAllOf(l.t.Context(), &workv1.AppliedManifestWork{}), l.c.List(l.t.Context(), list)); err != nil {
			l.t.Fatal(err)
		}
		for i := range list.Items {
			err := l.c.Patch(l.t.Context(), &list.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			if client.IgnoreNotFound(err) != nil {
				l.t.Fatal(err)
			}
		}
	}
}

// importing gives the cluster a target hub with the import controller.
func (l *lostCluster) importing() {
	l.t.Helper()
	l.planes.hub, l.hub = second, hubClient(l.t, second.Config())
	config := second.Config()
	kubeconfig, err := cluster.Kubeconfig(config.Host, config.CAData, config.BearerToken)
	if err != nil {
		l.t.Fatal(err)
	}
	l.importer = &klusterlet.Importer{Client: l.hub, Server: config.Host, Kubeconfig: kubeconfig, BootstrapNamespace: bootstrapNamespace}
	if err := l.hub.Create(l.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accountsNamespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		l.t.Fatal(err)
	}
}

func (l *lostCluster) create(o client.Object) {
	l.t.Helper()
	if err := l.c.Create(l.t.Context(), o); err != nil {
		l.t.Fatal(err)
	}
}

// secret returns a Secret of the agents with a kubeconfig.
func (l *lostCluster) secret(name, server, token string) *corev1.Secret {
	l.t.Helper()
	kubeconfig, err := cluster.Kubeconfig(server, nil, token)
	if err != nil {
		l.t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentsNamespace, Name: name}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	if name == own.HubSecret {
		s.Data["cluster-name"] = []byte(l.name)
	}
	return s
}

const agentFinalizer = workv1.AppliedManifestWorkFinalizer

// applied creates the work of a hub, and an object that it owns.
func (l *lostCluster) applied(k *operatorv1.Klusterlet, work, server string, o client.Object, resource workv1.AppliedManifestResourceMeta) {
	l.t.Helper()
	w := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: rejoin.HashOf(server) + "-" + work, Finalizers: []string{agentFinalizer}},
		Spec: workv1.AppliedManifestWorkSpec{HubHash: rejoin.HashOf(server), AgentID: string(k.UID), ManifestWorkName: work}}
	l.create(w)
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: w.Name, UID: w.UID}})
	l.create(o)
	resource.UID = string(o.GetUID())
	w.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{resource}
	if err := l.c.Status().Update(l.t.Context(), w); err != nil {
		l.t.Fatal(err)
	}
}

// work applies a ConfigMap of a user.
func (l *lostCluster) work(k *operatorv1.Klusterlet, work, server string) client.Object {
	l.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: l.name + "-" + work}}
	l.applied(k, work, server, o, workv1.AppliedManifestResourceMeta{Version: "v1", ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: o.Namespace, Name: o.Name}})
	return o
}

// klusterletWork applies what the klusterlet lives on.
func (l *lostCluster) klusterletWork(k *operatorv1.Klusterlet) client.Object {
	l.t.Helper()
	o := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: agentsNamespace, Name: l.name}}
	l.applied(k, l.name+"-klusterlet", lostServer, o, workv1.AppliedManifestResourceMeta{Version: "v1", ResourceIdentifier: workv1.ResourceIdentifier{Resource: "serviceaccounts", Namespace: o.Namespace, Name: o.Name}})
	return o
}

// rejoin returns the move of the cluster by a process whose requests pass a transport.
func (l *lostCluster) rejoin(through *fault.Transport, works api.EvictedWorksPolicy) *rejoin.Rejoin {
	l.t.Helper()
	target := l.planes.hub.Config()
	address := clusterv1.ClientConfig{URL: target.Host, CABundle: target.CAData}
	if l.withoutCA {
		address.CABundle = nil
	}
	return &rejoin.Rejoin{
		Cluster: l.name, Own: uncachedClient(l.t, through.Config(l.planes.cluster.Config())), Target: uncachedClient(l.t, through.Config(target)),
		Namespace: accountsNamespace, Address: address,
		OnEvictedWorks: works, Clock: clock.RealClock{}, Poll: 20 * time.Millisecond,
		Progress: func(s rejoin.Step, waits string) { l.t.Logf("%s: %s %s", l.name, s, waits) },
	}
}

// mustHaveArrived fails the test unless the cluster is at the target hub, and nothing but that is left of the move.
func (l *lostCluster) mustHaveArrived() {
	l.t.Helper()
	ctx := l.t.Context()
	mc := &clusterv1.ManagedCluster{}
	if err := l.hub.Get(ctx, client.ObjectKey{Name: l.name}, mc); err != nil {
		l.t.Fatal(err)
	}
	if !mc.Spec.HubAcceptsClient || !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionJoined) || len(mc.Labels)+len(mc.Annotations) > 0 {
		l.t.Errorf("ManagedCluster has labels %v, annotations %v, accepts %v, conditions %+v", mc.Labels, mc.Annotations, mc.Spec.HubAcceptsClient, mc.Status.Conditions)
	}
	k := &operatorv1.Klusterlet{}
	if err := l.c.Get(ctx, client.ObjectKey{Name: own.Name}, k); err != nil {
		l.t.Fatal(err)
	}
	if diff := difference(l.spec, k.Spec); diff != "" || len(k.Annotations) > 0 {
		l.t.Errorf("the Klusterlet has annotations %v, and its spec (-before +after):\n%s", k.Annotations, diff)
	}
	bootstrap := &corev1.Secret{}
	if err := l.c.Get(ctx, client.ObjectKey{Namespace: agentsNamespace, Name: own.OwnSecret}, bootstrap); err != nil {
		l.t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(bootstrap.Data["kubeconfig"])
	if err != nil || config.Host != l.planes.hub.Config().Host || (config.BearerToken != "") != (l.importer != nil) {
		l.t.Errorf("the bootstrap kubeconfig is %+v, %v, want that of the target, with a token by an import controller alone", config, err)
	}
	for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}} {
		if err := l.hub.List(ctx, list, client.HasLabels{"godwit.dev/shared-by-migrations"}); err != nil || meta.LenList(list) > 0 {
			l.t.Errorf("the target hub has %d objects of %T, %v", meta.LenList(list), list, err)
		}
	}
	for _, o := range l.kept {
		l.mustStay(o)
	}
}

// mustStay fails the test unless an object exists, and no work owns it.
func (l *lostCluster) mustStay(o client.Object) {
	l.t.Helper()
	now, _ := o.DeepCopyObject().(client.Object)
	if err := l.c.Get(l.t.Context(), client.ObjectKeyFromObject(o), now); err != nil {
		l.t.Error(err)
	} else if len(now.GetOwnerReferences()) > 0 || now.GetUID() != o.GetUID() {
		l.t.Errorf("%T %s has owners %v and UID %s, want none and %s", o, o.GetName(), now.GetOwnerReferences(), now.GetUID(), o.GetUID())
	}
}

// works returns the names of the works that are left of the lost hub.
func (l *lostCluster) works() []string {
	l.t.Helper()
	list := &workv1.AppliedManifestWorkList{}
	if err := l.c.List(l.t.Context(), list); err != nil {
		l.t.Fatal(err)
	}
	var names []string
	for _, w := range list.Items {
		names = append(names, w.Spec.ManifestWorkName)
	}
	return names
}
