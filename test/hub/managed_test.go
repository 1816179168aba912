package hub_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub/agent"
	api "github.com/godwit-dev/godwit/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/hub/identity"
	"github.com/godwit-dev/godwit/hub/manager"
	"github.com/godwit-dev/godwit/hub/message"
)

// managed is a migration by all three parties: the manager, and the agents of two hubs. The
// source hub is the global hub too.
type managed struct {
	*move
	g       *globalHub
	clock   *leaping
	key     objectKey
	process *process
	before  map[string]map[string]string
}

// leaping is a clock that a test sets forward. Only the manager has it.
type leaping struct {
	mutex sync.Mutex
	ahead time.Duration
}

func (l *leaping) Now() time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return time.Now().Add(l.ahead)
}

func (l *leaping) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

func (l *leaping) leap(d time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.ahead += d
}

// newManaged makes the hubs, the clusters and the manager.
func newManaged(t *testing.T, clusters int) *managed {
	t.Helper()
	config := shared.Config()
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: globalScheme(), Mapper: withoutAccounts{hubMapper()}})
	if err != nil {
		t.Fatal(err)
	}
	m := &managed{move: newMove(t, clusters), clock: &leaping{}}
	m.g = &globalHub{t: t, c: c, namespace: newNamespace(t, c), broker: m.broker, events: events.NewFakeRecorder(1000), clock: m.clock, metrics: manager.NewMetrics(c), manager: m.identity}
	hubs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.g.namespace, Name: manager.EnrolledHubs}, Data: map[string]string{}}
	for _, s := range []*hubSide{m.source, m.target} {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
		mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: s.config.Host, CABundle: s.config.CAData}}
		if err := c.Create(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		m.g.setAvailable(s.name, metav1.ConditionTrue)
		hubs.Data[s.name] = identity.Format(s.identity.Key())
	}
	if err := c.Create(t.Context(), hubs); err != nil {
		t.Fatal(err)
	}
	return m
}

// begin creates the migration, and starts the manager.
func (m *managed) begin() {
	m.t.Helper()
	m.before = m.objects()
	play(m.t, m.klusterlets...)
	o := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: m.g.namespace, Name: "move"}}
	o.Spec.From, o.Spec.To = api.HubName(m.source.name), api.HubName(m.target.name)
	for _, k := range m.klusterlets {
		o.Spec.IncludedManagedClusters = append(o.Spec.IncludedManagedClusters, api.ClusterName(k.name))
	}
	if err := m.g.c.Create(m.t.Context(), o); err != nil {
		m.t.Fatal(err)
	}
	m.key, m.uid = client.ObjectKeyFromObject(o), string(o.UID)
	m.process = m.g.start(nil, m.key)
	m.t.Cleanup(m.process.stop)
}

// end waits until nothing is left to do, in a phase.
func (m *managed) end(phase api.Phase) *api.ManagedClusterMigration {
	m.t.Helper()
	o := m.g.await(m.key, "the end of the migration", settled)
	if o.Status.Phase != phase {
		m.t.Fatalf("the migration ends in phase %s, want %s:\n%s\nlogs:\n%s", o.Status.Phase, phase, describe(o), strings.Join(m.logs.text(), "\n"))
	}
	m.mustHaveNoKeys()
	m.g.awaitNoKeys(o)
	return o
}

// announced fails the test unless there was an event of a type with a reason.
func (m *managed) announced(kind, reason string) {
	m.t.Helper()
	var all []string
	for {
		select {
		case e := <-m.g.events.Events:
			all = append(all, e)
			continue
		default:
		}
		break
	}
	if !slices.ContainsFunc(all, func(e string) bool { return strings.HasPrefix(e, kind+" "+reason+" ") }) {
		m.t.Errorf("no event %s %s among:\n%s", kind, reason, strings.Join(all, "\n"))
	}
}

// TestAllParties move clusters, from the creation of the migration to its deletion.
func TestAllParties(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 2)
	m.run(m.source)
	m.run(m.target)
	m.begin()
	o := m.end(api.PhaseCompleted)
	if !meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionReady) || o.Status.Counts.Moved != 2 {
		t.Errorf("counts %+v, conditions:\n%s", o.Status.Counts, describe(o))
	}
	for _, s := range m.sites {
		m.moved(s, m.before[s.name])
	}
	m.announced(corev1.EventTypeNormal, api.ReasonSucceeded)
	if err := m.g.c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	m.await("the migration to go", func() bool { return apierrors.IsNotFound(m.g.c.Get(t.Context(), m.key, o)) })
}

// TestAllPartiesPartially: one cluster can't reach the target hub. It returns when the time of
// phase Registering is over, and the other one has moved.
func TestAllPartiesPartially(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 2)
	m.klusterlets[1].unreachable = true
	m.run(m.source)
	m.run(m.target)
	m.begin()
	m.g.await(m.key, "one cluster is registered", func(o *api.ManagedClusterMigration) bool {
		return o.Status.Phase == api.PhaseRegistering && o.Status.Counts.Moved == 1
	})
	m.clock.leap(12 * time.Minute)
	o := m.end(api.PhaseCompleted)
	registered := meta.FindStatusCondition(o.Status.Conditions, api.ConditionRegistered)
	if registered == nil || registered.Status != metav1.ConditionFalse || registered.Reason != api.ReasonPartiallyRegistered ||
		o.Status.Counts.Moved != 1 || o.Status.Counts.Restored != 1 {
		t.Errorf("counts %+v, conditions:\n%s", o.Status.Counts, describe(o))
	}
	if len(o.Status.Failures) != 1 || o.Status.Failures[0].Cluster != m.sites[1].name || o.Status.Failures[0].Phase != api.PhaseRegistering {
		t.Errorf("failures %+v, want cluster %s in phase Registering", o.Status.Failures, m.sites[1].name)
	}
	m.moved(m.sites[0], m.before[m.sites[0].name])
	m.back(m.sites[1], m.before[m.sites[1].name])
	m.announced(corev1.EventTypeWarning, api.ReasonPartiallyRegistered)
}

// TestAllPartiesAbort: a user asks for the rollback when one cluster is at the target hub.
func TestAllPartiesAbort(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 2)
	m.run(m.source)
	m.run(m.target)
	m.klusterlets[1].unreachable = true // so that phase Registering does not end
	m.begin()
	m.g.await(m.key, "one cluster is registered", func(o *api.ManagedClusterMigration) bool {
		return o.Status.Phase == api.PhaseRegistering && o.Status.Counts.Moved == 1
	})
	o := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: m.key.Namespace, Name: m.key.Name}}
	request := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+api.RequestAnnotation+`":"`+api.RequestRollback+`"}}}`))
	if err := m.g.c.Patch(t.Context(), o, request); err != nil {
		t.Fatal(err)
	}
	o = m.end(api.PhaseFailed)
	if !meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionRolledBack) || o.Status.Counts.Restored != 2 || o.Status.Progress.Reason != api.ReasonAborted {
		t.Errorf("counts %+v, conditions:\n%s", o.Status.Counts, describe(o))
	}
	for _, s := range m.sites {
		m.back(s, m.before[s.name])
	}
	m.announced(corev1.EventTypeWarning, api.ReasonAborted)
}

// muting is the transport of an agent whose reports of one phase do not arrive.
type muting struct {
	agent.Transport
	phase api.Phase
	muted atomic.Bool
}

func (m *muting) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	if h, err := message.Peek(e); err == nil && h.Type == message.TypeStatus && h.Stage == m.phase && m.muted.Load() {
		return nil
	}
	return m.Transport.Send(ctx, topic, key, e)
}

// TestAllPartiesCleanupFails: the clusters have moved, and the source hub does not answer in
// phase Cleaning. The migration is Completed and says what is left, and ends with the answer.
func TestAllPartiesCleanupFails(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 1)
	quiet := &muting{Transport: m.connect(m.source.name), phase: api.PhaseCleaning}
	quiet.muted.Store(true)
	m.source.transport = quiet
	m.run(m.source)
	m.run(m.target)
	m.begin()
	m.g.await(m.key, "the source hub cleans", func(o *api.ManagedClusterMigration) bool {
		return o.Status.Phase == api.PhaseCleaning && apierrors.IsNotFound(m.source.c.Get(t.Context(), client.ObjectKey{Name: m.sites[0].name}, &clusterv1.ManagedCluster{}))
	})
	m.clock.leap(5 * time.Minute)
	o := m.g.await(m.key, "the migration is Completed", func(o *api.ManagedClusterMigration) bool { return o.Status.Phase == api.PhaseCompleted })
	cleaned := meta.FindStatusCondition(o.Status.Conditions, api.ConditionCleaned)
	if cleaned == nil || cleaned.Status != metav1.ConditionFalse || cleaned.Reason != api.ReasonIncomplete || !strings.Contains(cleaned.Message, "the source hub") ||
		o.Status.CompletionTime != nil || meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionReady) {
		t.Errorf("completionTime %v, conditions:\n%s", o.Status.CompletionTime, describe(o))
	}
	m.announced(corev1.EventTypeWarning, api.ReasonIncomplete)

	quiet.muted.Store(false)
	m.clock.leap(2 * time.Minute) // a third of the time: the command is sent again
	o = m.end(api.PhaseCompleted)
	if !meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionReady) || !meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionCleaned) {
		t.Errorf("conditions:\n%s", describe(o))
	}
	m.moved(m.sites[0], m.before[m.sites[0].name])
}
