package hub_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// hubSide is a hub with its agent.
type hubSide struct {
	name string
	// config is that of the agent, which has the permissions of its role and no others; c is the
	// administrator's client.
	config    *rest.Config
	c         client.Client
	identity  message.Identity
	namespace string
	metrics   *agent.Metrics
	registry  *prometheus.Registry
	// transport, rules and clock are the agent's, if the test has replaced them.
	transport agent.Transport
	rules     []resource.Rule
	clock     clock.Clock
}

// move is a migration of which a test plays the manager. Agents and hubs are real.
type move struct {
	t              *testing.T
	broker         *kfake.Cluster
	source, target *hubSide
	klusterlets    []*klusterlet.Klusterlet
	sites          []site

	uid      string
	identity message.Identity
	kafka    *kafka.Transport
	events   chan status
	sealing  map[hub.Party][]byte
	secret   message.Sealed
	// state is the manager's. The goroutine of the test has it.
	state hub.State
	// users is the choice of the user for objects that no rule moves.
	users api.UserObjectsPolicy
	sent  map[hub.Party]message.Envelope
	heard map[string]bool
	// relayed counts the reports by which the target has named what is missing.
	relayed int
	logs    *lines
}

func (s *hubSide) importer(freezes bool) klusterlet.Importer {
	return klusterlet.Importer{Client: s.c, Server: s.config.Host, BootstrapNamespace: bootstrapNamespace, Freezes: freezes}
}

// lines are what agents have logged.
type lines struct {
	mutex sync.Mutex
	all   []string
}

// newLines prints the lines if the test fails.
func newLines(t *testing.T) *lines {
	l := &lines{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs:\n%s", strings.Join(l.text(), "\n"))
		}
	})
	return l
}

func (l *lines) add(prefix, args string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.all = append(l.all, prefix+args)
}

func (l *lines) text() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.all)
}

// newMove makes two hubs, clusters at the source, and a migration of them.
func newMove(t *testing.T, clusters int) *move {
	t.Helper()
	return newMoveBetween(t, clusters, shared.Config(), second.Config())
}

func newMoveBetween(t *testing.T, clusters int, source, target *rest.Config) *move {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	m := &move{t: t, broker: broker, logs: newLines(t)}
	if m.identity, err = message.NewIdentity(); err != nil {
		t.Fatal(err)
	}
	m.source, m.target = m.newSide("source", source), m.newSide("target", target)
	m.kafka = m.connect("manager")
	topics := []string{message.MigrationTopic(m.source.name), message.MigrationTopic(m.target.name)}
	for _, s := range []*hubSide{m.source, m.target} {
		topics = append(topics, message.SpecTopic(s.name), message.StatusTopic(s.name))
	}
	if err := m.kafka.EnsureTopics(t.Context(), topics...); err != nil {
		t.Fatal(err)
	}
	m.begin(clusters, source)
	return m
}

// backwards is another migration, of clusters of its own from the target to the source.
func (m *move) backwards(t *testing.T, clusters int) *move {
	t.Helper()
	other := &move{t: t, broker: m.broker, logs: m.logs, identity: m.identity, source: m.target, target: m.source, kafka: m.kafka}
	other.begin(clusters, second.Config())
	return other
}

// begin makes the clusters, and the state of the manager.
func (m *move) begin(clusters int, hubConfig *rest.Config) {
	m.t.Helper()
	m.events, m.sealing, m.sent, m.heard = make(chan status, 1000), map[hub.Party][]byte{}, map[hub.Party]message.Envelope{}, map[string]bool{}
	for range clusters {
		s := newSiteOn(m.t, hubConfig)
		m.sites = append(m.sites, s)
		// One half of the clusters has the import controllers of later hubs.
		freezes := len(m.klusterlets)%2 == 1
		m.klusterlets = append(m.klusterlets, &klusterlet.Klusterlet{Name: s.name, Source: m.source.importer(freezes), Target: m.target.importer(freezes), Tick: tick})
	}
	m.uid = "uid-of-" + m.sites[0].name
	spec := api.ManagedClusterMigrationSpec{From: api.HubName(m.source.name), To: api.HubName(m.target.name)}
	for _, name := range names(m.klusterlets) {
		spec.IncludedManagedClusters = append(spec.IncludedManagedClusters, api.ClusterName(name))
	}
	m.state = hub.New(spec)
	m.state.Timeouts.Stage = patience
}

func (m *move) newSide(role string, config *rest.Config) *hubSide {
	m.t.Helper()
	identity, err := message.NewIdentity()
	if err != nil {
		m.t.Fatal(err)
	}
	s := &hubSide{name: role + "-" + newName(), config: rest.CopyConfig(config), c: hubClient(m.t, config), identity: identity, registry: prometheus.NewRegistry(), metrics: agent.NewMetrics()}
	s.namespace = s.name
	if err := s.metrics.Register(s.registry); err != nil {
		m.t.Fatal(err)
	}
	s.install(m.t, s.namespace)
	user := "agent-of-" + s.name
	m.grant(s, user)
	s.config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return s
}

// install makes what Open Cluster Management has on a hub, and further namespaces.
func (s *hubSide) install(t *testing.T, namespaces ...string) {
	t.Helper()
	for _, namespace := range append(namespaces, bootstrapNamespace) {
		if err := s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// grant gives an agent its permissions.
func (m *move) grant(s *hubSide, user string) {
	m.t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, p := range agent.Permissions(s.namespace) {
		rules[p.Namespace] = append(rules[p.Namespace], rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, ResourceNames: p.Names, Verbs: p.Verbs})
	}
	for namespace, rules := range rules {
		metadata := metav1.ObjectMeta{Namespace: namespace, Name: user}
		objects := []client.Object{
			&rbacv1.Role{ObjectMeta: metadata, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: metadata, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}},
		}
		if namespace == "" {
			objects = []client.Object{
				&rbacv1.ClusterRole{ObjectMeta: metadata, Rules: rules},
				&rbacv1.ClusterRoleBinding{ObjectMeta: metadata, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}},
			}
		}
		for _, o := range objects {
			if err := s.c.Create(m.t.Context(), o); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

func (m *move) connect(name string) *kafka.Transport {
	m.t.Helper()
	transport, err := kafka.New(kafka.Options{Brokers: m.broker.ListenAddrs(), ClientID: name})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(transport.Close)
	return transport
}

// agentOf is one life of the agent of a hub.
func (m *move) agentOf(s *hubSide, c client.Client, transport agent.Transport) *agent.Agent {
	return agent.New(agent.Options{
		Client: c, Transport: transport, Hub: s.name, Namespace: s.namespace, BootstrapNamespace: bootstrapNamespace,
		Manager: m.identity.Key(), Identity: s.identity, Metrics: s.metrics, Rules: s.rules, Clock: s.clock,
		Heartbeat: time.Second, Poll: 200 * time.Millisecond, Quiet: time.Second,
	})
}

func (m *move) log(s *hubSide) logr.Logger {
	return funcr.New(func(prefix, args string) { m.logs.add(s.name+" "+prefix, args) }, funcr.Options{})
}

// run runs the agent of a hub until it is stopped, or the test ends.
func (m *move) run(s *hubSide) (stop func()) {
	m.t.Helper()
	transport := s.transport
	if transport == nil {
		transport = m.connect(s.name)
	}
	// The agent runs for all subtests, each of which replaces m.t.
	t, own := m.t, m.agentOf(s, hubClient(m.t, s.config), transport)
	return m.goes(func(ctx context.Context) {
		if err := own.Run(logr.NewContext(ctx, m.log(s))); err != nil {
			t.Errorf("agent of %s: %v", s.name, err)
		}
	})
}

// goes runs something until it is stopped, or the test ends.
func (m *move) goes(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	m.t.Cleanup(stop)
	return stop
}

// killing kills an agent at one of its messages: before it, or after it and without its answer.
type killing struct {
	agent.Transport
	at    int32
	after bool
	kill  context.CancelFunc
	sent  atomic.Int32
}

func (k *killing) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	if k.sent.Add(1) != k.at {
		return k.Transport.Send(ctx, topic, key, e)
	}
	if k.after {
		_ = k.Transport.Send(ctx, topic, key, e)
	}
	k.kill()
	return errors.New("the process was killed")
}

// live runs agent after agent, each of which is killed at a write or at a message. A life
// becomes longer, so that one gets through in the end.
func (m *move) live(s *hubSide) (kills func() int) {
	var lives atomic.Int32
	transport := m.connect(s.name)
	m.goes(func(ctx context.Context) {
		for life := 0; ctx.Err() == nil; life++ {
			at, kind := 1+life/4, life%4
			ctx, cancel := context.WithCancel(ctx)
			writes, messages := &fault.Transport{}, &killing{Transport: transport, after: kind == 3, kill: cancel}
			switch kind {
			case 0, 1:
				writes.Fault, writes.At = fault.All()[[]string{"killed before the write", "killed after the write"}[kind]], at
			default:
				messages.at = int32(at)
			}
			writes.Run(ctx, func(ctx context.Context) {
				if err := m.agentOf(s, hubClient(m.t, writes.Config(s.config)), messages).Run(logr.NewContext(ctx, m.log(s))); err != nil && ctx.Err() == nil {
					m.t.Errorf("agent of %s: %v", s.name, err)
				}
			})
			cancel()
			lives.Add(1)
		}
	})
	return func() int { return int(lives.Load()) }
}

// start begins the migration.
func (m *move) start() {
	play(m.t, m.klusterlets...)
	m.state = hub.Step(m.state, hub.Start{At: time.Now()})
}

func never() bool { return false }

// mustEnd fails the test unless the migration ends in a phase.
func (m *move) mustEnd(phase api.Phase) {
	m.t.Helper()
	m.manage(never)
	if m.state.Phase != phase {
		m.t.Fatalf("the migration ends in %s, want %s: %s %s %v", m.state.Phase, phase, m.state.Reason, m.state.Message, m.state.Clusters)
	}
	m.mustHaveNoKeys()
}

// mustHaveNoKeys: at every end the keys of the migration are deleted, and the commands are
// kept.
func (m *move) mustHaveNoKeys() {
	m.t.Helper()
	for _, s := range []*hubSide{m.source, m.target} {
		secret := &corev1.Secret{}
		if err := s.c.Get(m.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "godwit-migration-" + m.uid}, secret); err != nil {
			m.t.Fatal(err)
		}
		if keys := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(keys, []string{format.Key, "task"}) {
			m.t.Errorf("the Secret of hub %s has %v, want its format and the task alone", s.name, keys)
		}
	}
}

// onTarget is a site as the target hub has it.
func (m *move) onTarget(s site) site {
	s.c = m.target.c
	return s
}

// refused counts the messages that a hub has refused for a reason.
func (m *move) refused(s *hubSide, reason string) (n int) {
	m.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		m.t.Fatal(err)
	}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				if f.GetName() == "godwit_cluster_migration_agent_messages_refused_total" && l.GetName() == "reason" && l.GetValue() == reason {
					n += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}

// await fails the test unless something holds in the end.
func (m *move) await(what string, holds func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); pause(m.t.Context(), tick) {
		if time.Now().After(deadline) {
			m.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// values are all that the broker has.
func (m *move) values() []string {
	m.t.Helper()
	var all []string
	for _, s := range []*hubSide{m.source, m.target} {
		for _, topic := range []string{message.SpecTopic(s.name), message.StatusTopic(s.name), message.MigrationTopic(s.name)} {
			ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
			err := m.kafka.Receive(ctx, "reader-of-"+topic, []string{topic}, func(_ context.Context, _ string, e message.Envelope) error {
				all = append(all, fmt.Sprint(e.Attributes), string(e.Value))
				return nil
			})
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				m.t.Fatal(err)
			}
		}
	}
	return all
}
