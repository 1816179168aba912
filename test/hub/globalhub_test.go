package hub_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/hub"
	api "github.com/godwit-dev/godwit/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/hub/identity"
	"github.com/godwit-dev/godwit/hub/kafka"
	"github.com/godwit-dev/godwit/hub/manager"
	"github.com/godwit-dev/godwit/hub/message"
)

// globalHub is a global hub with a broker and the agents of two hubs, which answer as a
// script says. Each test has hubs of its own.
type globalHub struct {
	t         *testing.T
	c         client.WithWatch
	namespace string // of the manager and of the migrations
	manager   message.Identity
	broker    *kfake.Cluster
	from, to  *scripted
	events    *events.FakeRecorder
	metrics   *manager.Metrics
	clock     clock.PassiveClock
	// forbidden is a topic that the broker does not let the manager write.
	forbidden string
}

// patience is for a busy machine.
const patience = 2 * time.Minute

var globalScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.Install, api.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
})

func newGlobalHub(t *testing.T) *globalHub {
	t.Helper()
	config := shared.Config()
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: globalScheme(), Mapper: withoutAccounts{hubMapper()}})
	if err != nil {
		t.Fatal(err)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	g := &globalHub{t: t, c: c, namespace: newNamespace(t, c), broker: broker, events: events.NewFakeRecorder(1000), clock: clock.RealClock{}}
	g.metrics = manager.NewMetrics(c)
	g.manager, err = identity.Ensure(t.Context(), c, c, g.namespace)
	if err != nil {
		t.Fatal(err)
	}
	name := newName()
	g.from, g.to = g.newHub("from-"+name, hub.Source), g.newHub("to-"+name, hub.Target)
	g.enroll(g.from, g.to)
	return g
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
	mc := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "https://" + name + ".example.com", CABundle: []byte("ca")}}},
	}
	if err := g.c.Create(g.t.Context(), mc); err != nil {
		g.t.Fatal(err)
	}
	g.setAvailable(name, metav1.ConditionTrue)
	own, err := message.NewIdentity()
	if err != nil {
		g.t.Fatal(err)
	}
	a := &scripted{g: g, hub: name, party: p, identity: own, inboxes: map[string]hub.Inbox{}, keys: map[string]message.OpeningKey{}, sent: map[string]message.StatusBundle{}}
	a.transport = g.transport(name)
	ctx, cancel := context.WithCancel(g.t.Context())
	var group sync.WaitGroup
	group.Go(func() { a.receive(ctx) })
	group.Go(func() { a.beat(ctx) })
	g.t.Cleanup(func() { cancel(); group.Wait() })
	return a
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
	m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: name}}
	m.Spec.From, m.Spec.To = api.HubName(g.from.hub), api.HubName(g.to.hub)
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

// process is one run of the manager, until it is killed.
type process struct {
	r      *manager.Reconciler
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// start runs the manager for some migrations. Its writes and sends go through a valve, if
// there is one.
func (g *globalHub) start(v *valve, keys ...objectKey) *process {
	g.t.Helper()
	ctx, cancel := context.WithCancel(g.t.Context())
	transport := g.transport("manager")
	p := &process{cancel: cancel}
	var c client.Client = g.c
	var carries manager.Transport = transport
	if v != nil {
		v.kill = cancel
		c, carries = v.client(g.c), v.transport(transport)
	}
	if g.forbidden != "" {
		carries = forbidding{carries, g.forbidden}
	}
	p.r = &manager.Reconciler{
		Client: c, Reader: g.c, Recorder: g.events, Clock: g.clock, Transport: carries,
		Metrics: g.metrics, Namespace: g.namespace, Identity: g.manager,
	}
	p.group.Go(func() {
		if err := p.r.Receive(ctx); err != nil {
			g.t.Error(err)
		}
	})
	for _, key := range keys {
		p.group.Go(func() {
			for ctx.Err() == nil {
				_, err := p.r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
				if err != nil && ctx.Err() == nil {
					g.t.Logf("reconcile: %v", err)
				}
				pause(ctx, 20*time.Millisecond)
			}
		})
	}
	return p
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// stop kills the process.
func (p *process) stop() {
	p.cancel()
	p.group.Wait()
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
		pause(g.t.Context(), 20*time.Millisecond)
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
	if got := g.from.opened(string(m.UID)); !strings.Contains(got, "issued by "+g.to.hub) {
		g.t.Errorf("the source hub opened the kubeconfig %q", got)
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
		pause(g.t.Context(), 20*time.Millisecond)
	}
}

// scripted is an agent that keeps the rules of hub.Inbox, and says that all is done.
type scripted struct {
	g         *globalHub
	hub       string
	party     hub.Party
	identity  message.Identity
	transport *kafka.Transport
	silent    atomic.Bool // sends no heartbeat

	mutex   sync.Mutex
	inboxes map[string]hub.Inbox // by migration
	keys    map[string]message.OpeningKey
	sent    map[string]message.StatusBundle
	secrets map[string]string // kubeconfigs that were opened
	orders  []string          // executed: migration, action
	// held is an action that the agent does not answer yet, for the migrations that it names.
	held       hub.Action
	reached    chan struct{}
	unanswered []string
}

func (a *scripted) beat(ctx context.Context) {
	for ctx.Err() == nil {
		if !a.silent.Load() {
			a.write(ctx, message.Header{Type: message.TypeHeartbeat}, message.Heartbeat{Hub: a.hub, Versions: []int{message.Version}})
		}
		pause(ctx, 250*time.Millisecond)
	}
}

func (a *scripted) write(ctx context.Context, h message.Header, bundle any) {
	h.From, h.To, h.Left = a.hub, message.ManagerName, time.Minute
	data, err := message.Encode(bundle)
	if err == nil {
		var e message.Envelope
		if e, err = message.Write(h, data, a.identity, nil); err == nil {
			err = a.transport.Send(ctx, message.StatusTopic(a.hub), cmp.Or(h.Migration, a.hub), e)
		}
	}
	if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "UNKNOWN_TOPIC") {
		a.g.t.Logf("%s: %v", a.hub, err)
	}
}

func (a *scripted) receive(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.transport.Receive(ctx, "agent-"+a.hub, []string{message.SpecTopic(a.hub)}, a.handle)
		if ctx.Err() == nil && !strings.Contains(err.Error(), "UNKNOWN_TOPIC") {
			a.g.t.Logf("%s: %v", a.hub, err)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

func (a *scripted) handle(ctx context.Context, _ string, e message.Envelope) error {
	h, data, err := message.Read(e, a.hub, a.g.manager.Key(), nil)
	if err != nil {
		a.g.t.Errorf("%s: %v", a.hub, err)
		return nil
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var c hub.Command
	var source message.SourceBundle
	var target message.TargetBundle
	if a.party == hub.Source {
		source, err = message.Decode[message.SourceBundle](data)
		c = source.Command
	} else {
		target, err = message.Decode[message.TargetBundle](data)
		c = target.Command
	}
	if err != nil {
		a.g.t.Error(err)
		return nil
	}
	inbox, handling := a.inboxes[h.Migration].Receive(c)
	a.inboxes[h.Migration] = inbox
	if handling == hub.Execute {
		a.sent[h.Migration] = a.execute(h, c, source, target)
	}
	switch {
	case handling == hub.Ignore:
	case slices.ContainsFunc(c.Orders, func(o hub.Order) bool { return o.Action == a.held }):
		a.unanswered = append(a.unanswered, h.Migration)
		a.reached <- struct{}{}
	default:
		a.report(ctx, h.Migration)
	}
	return nil
}

// report sends the last report on a migration.
func (a *scripted) report(ctx context.Context, uid string) {
	last := a.inboxes[uid].Last
	a.write(ctx, message.Header{Type: message.TypeStatus, Migration: uid, Stage: last.Stage, Attempt: last.Attempt}, a.sent[uid])
}

// execute says that all orders are done for all clusters.
func (a *scripted) execute(h message.Header, c hub.Command, source message.SourceBundle, target message.TargetBundle) message.StatusBundle {
	key, ok := a.keys[h.Migration]
	if !ok {
		var err error
		if key, err = message.NewOpeningKey(); err != nil {
			a.g.t.Error(err)
		}
		a.keys[h.Migration] = key
	}
	b := message.StatusBundle{Finished: true, SealingKey: key.Key().Bytes()}
	for _, o := range c.Orders {
		a.orders = append(a.orders, string(o.Action))
		b.Done = append(b.Done, o.Clusters...)
		switch o.Action {
		case hub.ValidateSource:
			b.ManagedClusters = o.Clusters
		case hub.GrantRegistration:
			to, err := message.ReadSealingKey(target.SourceSealingKey)
			if err == nil && target.Bootstrap == nil {
				err = errors.New("no kubeconfig is asked for")
			}
			if err == nil {
				b.BootstrapSecret, err = message.SealSecret(to, h.Migration, []byte("issued by "+a.hub+" for "+target.Bootstrap.Server))
			}
			if err != nil {
				a.g.t.Error(err)
			}
		case hub.InstallBootstrap:
			text, err := message.OpenSecret(key, h.Migration, source.BootstrapSecret)
			if err != nil {
				a.g.t.Error(err)
			}
			if a.secrets == nil {
				a.secrets = map[string]string{}
			}
			a.secrets[h.Migration] = string(text)
		}
	}
	slices.Sort(b.Done)
	b.Done = slices.Compact(b.Done)
	return b
}

func (a *scripted) opened(uid string) string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.secrets[uid]
}

// executed are the actions that the agent was told, in their order.
func (a *scripted) executed() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.orders)
}

// valve lets writes and sends through, up to one at which the manager is killed.
type valve struct {
	kill   context.CancelFunc
	left   atomic.Int32
	before bool // killed before the last one, instead of after it
	passed atomic.Int32
}

var errKilled = errors.New("the manager is killed")

// pass executes an operation unless the manager is dead.
func (v *valve) pass(do func() error) error {
	left := v.left.Add(-1)
	switch {
	case left < 0, left == 0 && v.before:
		v.kill()
		return errKilled
	}
	v.passed.Add(1)
	err := do()
	if left == 0 {
		v.kill()
		return errors.Join(errKilled, err)
	}
	return err
}

func (v *valve) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return v.pass(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return v.pass(func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return v.pass(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return v.pass(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return v.pass(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
}

func (v *valve) transport(t *kafka.Transport) manager.Transport { return valved{t, v} }

type valved struct {
	*kafka.Transport
	v *valve
}

func (t valved) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	return t.v.pass(func() error { return t.Transport.Send(ctx, topic, key, e) })
}
