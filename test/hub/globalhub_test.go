package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/twmb/franz-go/pkg/kfake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// globalHub is a global hub with a broker and the agents of two hubs, which answer as a
// script says. Each test has hubs of its own.
type globalHub struct {
	t *testing.T
	c client.WithWatch
	// own is the client of the manager, if it is not c.
	own       client.WithWatch
	namespace string // of the manager and of the migrations
	manager   message.Identity
	broker    *kfake.Cluster
	from, to  *scripted
	events    *events.FakeRecorder
	metrics   *manager.Metrics
	clock     clock.PassiveClock
	// log is the manager's; it logs nothing unless the test sets it.
	log logr.Logger
	// forbidden is a topic that the broker does not let the manager write.
	forbidden string
	// allowed are the namespaces whose migrations the manager begins; all if empty.
	allowed []string
	// through wraps what carries the messages of the manager.
	through func(manager.Transport) manager.Transport
	// kubeconfig is in what the source hub is to open.
	kubeconfig string
	// tokenCA is the CA that the add-on issues with a token.
	tokenCA []byte
}

// awaitEvery is how often a test reads what it waits for.
const awaitEvery = 200 * time.Millisecond

// patience is for a busy machine.
const patience = 5 * time.Minute

var globalScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.Install, addonv1alpha1.Install, api.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
})

// newGlobalHub makes a global hub without ManagedServiceAccounts.
func newGlobalHub(t *testing.T) *globalHub {
	t.Helper()
	return newGlobalHubWith(t, withoutAccounts{hubMapper()})
}

func newGlobalHubWith(t *testing.T, kinds meta.RESTMapper) *globalHub {
	t.Helper()
	return newGlobalHubOn(t, shared.Config(), kinds)
}

func newGlobalHubOn(t *testing.T, config *rest.Config, kinds meta.RESTMapper) *globalHub {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	g := newHublessGlobalHub(t, config, kinds, broker)
	name := newName()
	g.from, g.to = g.newHub("from-"+name, hub.Source), g.newHub("to-"+name, hub.Target)
	g.enroll(g.from, g.to)
	g.kubeconfig = "issued by " + g.to.hub
	return g
}

// newHublessGlobalHub makes a global hub that no other hub is registered at.
func newHublessGlobalHub(t *testing.T, config *rest.Config, kinds meta.RESTMapper, broker *kfake.Cluster) *globalHub {
	t.Helper()
	c := globalClient(t, config, kinds)
	g := &globalHub{t: t, c: c, namespace: newNamespace(t, c), broker: broker, events: events.NewFakeRecorder(1000), clock: clock.RealClock{}, tokenCA: []byte(unrelatedCA())}
	g.metrics = manager.NewMetrics(c)
	var err error
	g.manager, err = identity.Ensure(t.Context(), c, c, identity.Owner{Namespace: g.namespace, Name: message.ManagerName})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func globalClient(t *testing.T, config *rest.Config, kinds meta.RESTMapper) client.WithWatch {
	t.Helper()
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: globalScheme(), Mapper: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withoutAccounts is a mapper of a global hub without ManagedServiceAccounts.
type withoutAccounts struct{ meta.RESTMapper }

func (w withoutAccounts) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Kind == "ManagedServiceAccount" {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return w.RESTMapper.RESTMapping(kind, versions...)
}

// newHub makes a hub with its ManagedCluster, and starts its agent.
func (g *globalHub) newHub(name string, p hub.Party) *scripted {
	g.t.Helper()
	a := g.newAgent(name, p)
	g.run(a)
	return a
}

// newSilentHub makes a hub whose agent has never sent a heartbeat.
func (g *globalHub) newSilentHub(name string, p hub.Party) *scripted {
	g.t.Helper()
	a := g.newAgent(name, p)
	a.silent.Store(true)
	g.run(a)
	return a
}

func (g *globalHub) newAgent(name string, p hub.Party) *scripted {
	g.t.Helper()
	g.register(name, clusterv1.ClientConfig{URL: addressOf(name), CABundle: []byte(unrelatedCA())})
	own, err := message.NewIdentity()
	if err != nil {
		g.t.Fatal(err)
	}
	a := &scripted{g: g, hub: name, party: p, identity: own, inboxes: map[string]hub.Inbox{}, keys: map[string]message.OpeningKey{}, sent: map[string]message.StatusBundle{}, accounts: map[string]bool{}}
	a.transport = g.transport(name)
	return a
}

// addressOf is where clusters reach a hub, and the manager does not.
func addressOf(hub string) string { return "https://127.0.0.1:1/" + hub }

// register makes the ManagedCluster of a hub, which is available.
func (g *globalHub) register(name string, address clusterv1.ClientConfig) {
	g.t.Helper()
	mc := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: []clusterv1.ClientConfig{address}},
	}
	if err := g.c.Create(g.t.Context(), mc); err != nil {
		g.t.Fatal(err)
	}
	g.setAvailable(name, metav1.ConditionTrue)
}

// run runs an agent until the test ends.
func (g *globalHub) run(a *scripted) {
	ctx, cancel := context.WithCancel(g.t.Context())
	var group sync.WaitGroup
	group.Go(func() { a.receive(ctx) })
	group.Go(func() { a.beat(ctx) })
	g.t.Cleanup(func() { cancel(); group.Wait() })
}

func (g *globalHub) transport(client string) *kafka.Transport {
	g.t.Helper()
	transport, err := kafka.New(kafka.Options{Brokers: g.broker.ListenAddrs(), ClientID: client})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(transport.Close)
	return transport
}

func (g *globalHub) setAvailable(name string, status metav1.ConditionStatus) {
	g.t.Helper()
	mc := &clusterv1.ManagedCluster{}
	if err := g.c.Get(g.t.Context(), client.ObjectKey{Name: name}, mc); err != nil {
		g.t.Fatal(err)
	}
	meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "R", Message: "the klusterlet has stopped"})
	mc.Status.Version = clusterv1.ManagedClusterVersion{}
	if err := g.c.Status().Update(g.t.Context(), mc); err != nil {
		g.t.Fatal(err)
	}
}

// enroll writes the keys of hubs where the manager reads them.
func (g *globalHub) enroll(agents ...*scripted) {
	g.t.Helper()
	hubs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: manager.EnrolledHubs}, Data: map[string]string{}}
	for _, a := range agents {
		hubs.Data[a.hub] = identity.Format(a.identity.Key())
	}
	if err := g.c.Create(g.t.Context(), hubs); apierrors.IsAlreadyExists(err) {
		err = g.c.Update(g.t.Context(), hubs)
		if err != nil {
			g.t.Fatal(err)
		}
	} else if err != nil {
		g.t.Fatal(err)
	}
}

// migrate creates a migration between the two hubs.
func (g *globalHub) migrate(name string, clusters ...string) objectKey {
	g.t.Helper()
	return g.migrateBy("", name, clusters...)
}

// migrateBy creates a migration of clusters, or of those that a placement selects.
func (g *globalHub) migrateBy(placement, name string, clusters ...string) objectKey {
	g.t.Helper()
	m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: name}}
	m.Spec.From, m.Spec.To, m.Spec.IncludedManagedClustersPlacementRef = api.HubName(g.from.hub), api.HubName(g.to.hub), placement
	m.Spec.OnUserObjects = api.UserObjectsAccept // each site has an object that no rule moves
	for _, c := range clusters {
		m.Spec.IncludedManagedClusters = append(m.Spec.IncludedManagedClusters, api.ClusterName(c))
	}
	if err := g.c.Create(g.t.Context(), m); err != nil {
		g.t.Fatal(err)
	}
	return client.ObjectKeyFromObject(m)
}

type objectKey = client.ObjectKey

func (g *globalHub) read(key objectKey) *api.ManagedClusterMigration {
	g.t.Helper()
	m := &api.ManagedClusterMigration{}
	if err := g.c.Get(g.t.Context(), key, m); err != nil {
		g.t.Fatal(err)
	}
	return m
}

// await waits until a migration has come to a state.
func (g *globalHub) await(key objectKey, what string, is func(*api.ManagedClusterMigration) bool) *api.ManagedClusterMigration {
	g.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		m := g.read(key)
		if is(m) {
			return m
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%s: phase %s, progress %+v, conditions %v", what, m.Status.Phase, m.Status.Progress, describe(m))
		}
		pause(g.t.Context(), awaitEvery)
	}
}

func describe(m *api.ManagedClusterMigration) string {
	var lines []string
	for _, c := range m.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(lines, "\n")
}

func settled(m *api.ManagedClusterMigration) bool { return m.Status.CompletionTime != nil }

// mustBeMoved fails the test unless every cluster has moved and nothing is left.
func (g *globalHub) mustBeMoved(m *api.ManagedClusterMigration) {
	g.t.Helper()
	if m.Status.Phase != api.PhaseCompleted || m.Status.Counts.Moved != m.Status.Counts.Total || !meta.IsStatusConditionTrue(m.Status.Conditions, api.ConditionReady) {
		g.t.Fatalf("phase %s, counts %+v, conditions:\n%s", m.Status.Phase, m.Status.Counts, describe(m))
	}
	g.awaitNoKeys(m)
	if got := g.from.opened(string(m.UID)); !strings.Contains(got, g.kubeconfig) {
		g.t.Errorf("the source hub opened the kubeconfig %q, want %q", got, g.kubeconfig)
	}
}

// mustAnnounce waits for an event of a type with a reason. The manager sends it after it has written the status.
func (g *globalHub) mustAnnounce(kind string, reason *godwit.Reason) {
	g.t.Helper()
	var others []string
	for limit := time.After(patience); ; {
		select {
		case e := <-g.events.Events:
			if strings.HasPrefix(e, kind+" "+reason.Name+" ") {
				return
			}
			others = append(others, e)
		case <-limit:
			g.t.Errorf("no event %s %s among:\n%s", kind, reason, strings.Join(others, "\n"))
			return
		}
	}
}

// awaitNoKeys waits until the keys of a migration are deleted.
func (g *globalHub) awaitNoKeys(m *api.ManagedClusterMigration) {
	g.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := g.c.Get(g.t.Context(), objectKey{Namespace: m.Namespace, Name: m.Name + "-keys"}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil || time.Now().After(deadline) {
			g.t.Fatalf("the keys of the migration are still there: %v", err)
		}
		pause(g.t.Context(), awaitEvery)
	}
}

// unrelatedCA signs no certificate.
var unrelatedCA = sync.OnceValue(func() string {
	certificate, _, err := cert.GenerateSelfSignedCertKey("unrelated", nil, nil)
	if err != nil {
		panic(err)
	}
	return string(certificate)
})
