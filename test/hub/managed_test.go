package hub_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// managed is the manager and the agents of two hubs, of which no part is played. The source hub
// is the global hub too. The broker is in the process, and the klusterlets are simulated.
type managed struct {
	*move
	g *globalHub
	// clock is that of the manager.
	clock *leaping
	// key is the migration that begin creates, and before are the objects of its clusters then.
	key    objectKey
	before map[string]map[string]string
	// secrets are all that no other party may read, by what they are.
	secrets map[string][]byte
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

// newManaged makes the hubs, the clusters and the manager. Nothing runs yet.
func newManaged(t *testing.T, clusters int) *managed {
	t.Helper()
	return newManagedBetween(t, clusters, shared.Config(), second.Config())
}

func newManagedBetween(t *testing.T, clusters int, source, target *rest.Config) *managed {
	t.Helper()
	m := &managed{move: newMoveBetween(t, clusters, source, target), clock: &leaping{}, secrets: map[string][]byte{}}
	m.g = newHublessGlobalHub(t, source, withoutAccounts{hubMapper()}, m.broker)
	m.g.clock = m.clock
	m.g.log = funcr.New(func(prefix, args string) { m.logs.add("manager "+prefix, args) }, funcr.Options{Verbosity: 1})
	m.identity = m.g.manager
	m.g.from, m.g.to = &scripted{hub: m.source.name, identity: m.source.identity}, &scripted{hub: m.target.name, identity: m.target.identity}
	m.g.enroll(m.g.from, m.g.to)
	for _, s := range []*hubSide{m.source, m.target} {
		m.g.register(s.name, clusterv1.ClientConfig{URL: s.config.Host, CABundle: s.config.CAData})
	}
	return m
}

// runManager runs the manager for some migrations, until the test ends.
func (m *managed) runManager(keys ...objectKey) {
	m.t.Helper()
	m.t.Cleanup(m.g.start(nil, keys...).stop)
}

// begin creates the migration of all clusters, and starts the manager.
func (m *managed) begin() {
	m.t.Helper()
	m.create()
	m.runManager(m.key)
}

// create creates the migration of all clusters.
func (m *managed) create() {
	m.t.Helper()
	m.before = m.objects()
	play(m.t, m.klusterlets...)
	m.key = m.g.migrate("move", names(m.klusterlets)...)
	m.uid = string(m.g.read(m.key).UID)
}

// end waits until nothing is left to do, in a phase.
func (m *managed) end(phase api.Phase) *api.ManagedClusterMigration {
	m.t.Helper()
	o := m.g.await(m.key, "the end of the migration", settled)
	if o.Status.Phase != phase {
		m.t.Fatalf("the migration ends in phase %s, want %s:\n%s", o.Status.Phase, phase, describe(o))
	}
	m.mustHaveNoKeys()
	m.g.awaitNoKeys(o)
	return o
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
	m.g.mustAnnounce(corev1.EventTypeNormal, api.ReasonSucceeded)
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
	m.klusterlets[1].Unreachable = true
	m.run(m.source)
	m.run(m.target)
	m.begin()
	m.g.await(m.key, "one cluster is registered", func(o *api.ManagedClusterMigration) bool {
		return o.Status.Phase == api.PhaseRegistering && o.Status.Counts.Moved == 1
	})
	m.clock.leap(12 * time.Minute)
	o := m.end(api.PhaseCompleted)
	registered := meta.FindStatusCondition(o.Status.Conditions, api.ConditionRegistered)
	if registered == nil || registered.Status != metav1.ConditionFalse || registered.Reason != api.ReasonPartiallyRegistered.Name ||
		o.Status.Counts.Moved != 1 || o.Status.Counts.Restored != 1 {
		t.Errorf("counts %+v, conditions:\n%s", o.Status.Counts, describe(o))
	}
	if len(o.Status.Failures) != 1 || o.Status.Failures[0].Cluster != m.sites[1].name || o.Status.Failures[0].Phase != api.PhaseRegistering {
		t.Errorf("failures %+v, want cluster %s in phase Registering", o.Status.Failures, m.sites[1].name)
	}
	m.moved(m.sites[0], m.before[m.sites[0].name])
	m.back(m.sites[1], m.before[m.sites[1].name])
	m.g.mustAnnounce(corev1.EventTypeWarning, api.ReasonPartiallyRegistered)
}

// TestAllPartiesAbort: a user asks for the rollback when one cluster is at the target hub. It stays there, and the other one
// returns.
func TestAllPartiesAbort(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 2)
	m.run(m.source)
	m.run(m.target)
	m.klusterlets[1].Unreachable = true // so that phase Registering does not end
	m.begin()
	m.g.await(m.key, "one cluster is registered", func(o *api.ManagedClusterMigration) bool {
		return o.Status.Phase == api.PhaseRegistering && o.Status.Counts.Moved == 1
	})
	o := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: m.key.Namespace, Name: m.key.Name}}
	request := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+api.RequestAnnotation+`":"`+api.RequestRollback+`"}}}`))
	if err := m.g.c.Patch(t.Context(), o, request); err != nil {
		t.Fatal(err)
	}
	o = m.end(api.PhaseCompleted)
	if !meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionRolledBack) || o.Status.Counts.Restored != 1 || o.Status.Counts.Moved != 1 ||
		!strings.Contains(o.Status.Progress.Message, "a user asked for the rollback") {
		t.Errorf("counts %+v, conditions:\n%s", o.Status.Counts, describe(o))
	}
	m.moved(m.sites[0], m.before[m.sites[0].name])
	m.back(m.sites[1], m.before[m.sites[1].name])
	m.g.mustAnnounce(corev1.EventTypeWarning, api.ReasonPartiallyRegistered)
}

// bootstrapToken waits for the kubeconfig that the source hub gives its klusterlets, and returns its token.
func (m *managed) bootstrapToken() string {
	m.t.Helper()
	secret := &corev1.Secret{}
	m.await("the bootstrap kubeconfig", func() bool {
		return m.source.c.Get(m.t.Context(), client.ObjectKey{Namespace: bootstrapNamespace, Name: "bootstrap-" + m.target.name}, secret) == nil
	})
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		m.t.Fatal(err)
	}
	return config.BearerToken
}

// expiry reads when a token of a ServiceAccount expires.
func expiry(t *testing.T, token string) time.Time {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts, want 3", len(parts))
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	return time.Unix(claims.Exp, 0)
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
//
// Matrix: H25.
func TestAllPartiesCleanupFails(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 1)
	quiet := &muting{Transport: m.connect(m.source.name), phase: api.PhaseCleaning}
	quiet.muted.Store(true)
	m.source.transport = quiet
	m.run(m.source)
	m.run(m.target)
	m.begin()
	expires := expiry(t, m.bootstrapToken())
	m.g.await(m.key, "the source hub cleans", func(o *api.ManagedClusterMigration) bool {
		return o.Status.Phase == api.PhaseCleaning && apierrors.IsNotFound(m.source.c.Get(t.Context(), client.ObjectKey{Name: m.sites[0].name}, &clusterv1.ManagedCluster{}))
	})
	m.clock.leap(5 * time.Minute)
	o := m.g.await(m.key, "the migration is Completed", func(o *api.ManagedClusterMigration) bool { return o.Status.Phase == api.PhaseCompleted })
	cleaned := meta.FindStatusCondition(o.Status.Conditions, api.ConditionCleaned)
	if cleaned == nil || cleaned.Status != metav1.ConditionFalse || cleaned.Reason != api.ReasonIncomplete.Name || !strings.Contains(cleaned.Message, "the source hub") ||
		o.Status.CompletionTime != nil || meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionReady) {
		t.Errorf("completionTime %v, conditions:\n%s", o.Status.CompletionTime, describe(o))
	}
	m.g.mustAnnounce(corev1.EventTypeWarning, api.ReasonIncomplete)

	// Until the target hub has configured the klusterlet, the cluster needs the token at every restart.
	m.clock.leap(20 * time.Hour)
	if left := expires.Sub(m.clock.Now()); left < 0 {
		t.Errorf("the bootstrap token has expired %s ago, and work of the migration is left", -left)
	}
	quiet.muted.Store(false)
	m.clock.leap(2 * time.Minute) // a third of the time: the command is sent again
	o = m.end(api.PhaseCompleted)
	if !meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionReady) || !meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionCleaned) {
		t.Errorf("conditions:\n%s", describe(o))
	}
	m.moved(m.sites[0], m.before[m.sites[0].name])
}
