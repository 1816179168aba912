package hub_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// count returns what a counter says, for the labels.
func (g *globalHub) count(name string, labels ...string) float64 {
	g.t.Helper()
	registry := prometheus.NewRegistry()
	if err := g.metrics.Register(registry); err != nil {
		g.t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	total := 0.0
	for _, f := range families {
		if f.GetName() != "godwit_cluster_migration_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			all := true
			for _, l := range m.GetLabel() {
				all = all && (len(labels) == 0 || slices.Contains(labels, l.GetValue()))
			}
			if all {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}

// TestManagerRefuses messages that are not those of the hub that has the command, each with
// a reason in the metric, and stays where it is.
//
// Matrix: H51.
func TestManagerRefuses(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	third := g.newHub("third-"+newName(), hub.Source)
	g.enroll(g.from, g.to, third)
	held, release := g.from.hold(hub.InstallBootstrap)
	defer release()
	key := g.migrate("move", "c1")
	p := g.start(nil, key)
	defer p.stop()
	<-held
	before := g.read(key)
	progress := before.Status.Progress
	uid := string(before.UID)
	status := func(of, in *scripted, h message.Header) func() {
		return func() {
			h.Type, h.To, h.ValidFor = cmp.Or(h.Type, message.TypeStatus), cmp.Or(h.To, message.ManagerName), time.Minute
			h.From = cmp.Or(h.From, of.hub)
			h.Migration, h.Stage, h.Attempt = cmp.Or(h.Migration, uid), cmp.Or(h.Stage, progress.Stage), cmp.Or(h.Attempt, progress.Attempt)
			data, err := message.Encode(message.StatusBundle{Finished: true, Done: []string{"c1"}})
			if err != nil {
				t.Fatal(err)
			}
			e, err := message.Write(h, data, of.identity, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := in.transport.Send(t.Context(), message.StatusTopic(in.hub), uid, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		reason  string
		attack  func()
		topic   *scripted
		refusal manager.Refusal
	}{
		"Impersonated":  {"The target claims to be the source.", status(g.to, g.from, message.Header{From: g.from.hub}), g.from, manager.Forged},
		"OwnTopic":      {"The target claims to be the source, in its own topic.", status(g.to, g.to, message.Header{From: g.from.hub}), g.to, manager.WrongHub},
		"ThirdHub":      {"A hub that has no part in the migration.", status(third, third, message.Header{}), third, manager.WrongHub},
		"Replayed":      {"A report on the command before.", status(g.from, g.from, message.Header{Attempt: progress.Attempt - 1}), g.from, manager.Outdated},
		"ReplayedStage": {"A report of the phase before.", status(g.from, g.from, message.Header{Stage: api.PhaseValidating, Attempt: 2}), g.from, manager.Outdated},
		"NotSent":       {"A report on a command that is still to come.", status(g.from, g.from, message.Header{Attempt: progress.Attempt + 1}), g.from, manager.NotSent},
		"OtherMove":     {"A migration that does not exist.", status(g.from, g.from, message.Header{Migration: "gone"}), g.from, manager.UnknownMigration},
		"Command":       {"A hub that acts as the manager.", status(g.from, g.from, message.Header{Type: message.TypeSource}), g.from, manager.Malformed},
		"OtherReader":   {"A report that is addressed to the other hub.", status(g.from, g.from, message.Header{To: g.to.hub}), g.from, manager.NotForThisHub},
		"Garbage": {"No envelope.", func() {
			if err := g.from.transport.Send(t.Context(), message.StatusTopic(g.from.hub), uid, message.Envelope{Value: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}, g.from, manager.Malformed},
	} {
		known := g.count("messages_refused_total", test.topic.hub, string(test.refusal))
		test.attack()
		deadline := time.Now().Add(patience)
		for g.count("messages_refused_total", test.topic.hub, string(test.refusal)) != known+1 {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s It was not refused as %s", name, test.reason, test.refusal)
			}
			pause(t.Context(), 10*time.Millisecond)
		}
		if after := g.read(key); after.ResourceVersion != before.ResourceVersion {
			// A later turn would mean that the attack counts as an answer.
			if after.Status.Progress.Attempt != progress.Attempt || after.Status.Phase != before.Status.Phase {
				t.Fatalf("%s: %s The migration went from %+v to %+v", name, test.reason, progress, after.Status.Progress)
			}
			before = after
		}
	}
	release()
	g.mustBeMoved(g.await(key, "the clusters have moved", settled))
}

// TestManagerSendsNothingToHubsThatAreNotReady: the migration fails with one reason, and
// neither hub hears of it.
//
// Matrix: H6, H112.
func TestManagerSendsNothingToHubsThatAreNotReady(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil  func(*globalHub)
		reason *godwit.Reason
		says   string
	}{
		"Missing": {func(g *globalHub) {
			if err := g.c.Delete(g.t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: g.to.hub}}); err != nil {
				g.t.Fatal(err)
			}
		}, api.ReasonHubNotReady, "has no ManagedCluster"},
		"Unavailable": {func(g *globalHub) { g.setAvailable(g.from.hub, metav1.ConditionUnknown) }, api.ReasonHubNotReady, "the klusterlet has stopped"},
		"NotEnrolled": {func(g *globalHub) { g.enroll(g.from) }, api.ReasonHubNotReady, "with `godwit cluster enroll "},
		"Silent": {func(g *globalHub) {
			g.to = g.newSilentHub("silent-"+newName(), hub.Target)
			g.enroll(g.from, g.to)
		}, api.ReasonHubNotReady, "has sent no heartbeat for 1m0s"},
		"NamespaceNotAllowed": {func(g *globalHub) { g.allowed = []string{"migrations", "team-a"} }, api.ReasonNamespaceNotAllowed, "create it in one of migrations, team-a, or add the namespace to --migration-namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGlobalHub(t)
			test.spoil(g)
			key := g.migrate("move", "c1")
			g.clock = fast{began: time.Now(), factor: 30}
			p := g.start(nil, key)
			defer p.stop()
			m := g.await(key, "the migration has failed", settled)
			c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
			if m.Status.Phase != api.PhaseFailed || c == nil || c.Status != metav1.ConditionTrue || c.Reason != test.reason.Name || !strings.Contains(c.Message, test.says) {
				t.Errorf("phase %s, want %s because of %q:\n%s", m.Status.Phase, test.reason, test.says, describe(m))
			}
			for announced := false; !announced; { // the event comes after the status
				select {
				case e := <-g.events.Events:
					announced = strings.Contains(e, test.reason.Name)
				case <-time.After(10 * time.Second):
					t.Fatalf("no event has the reason %s", test.reason.Name)
				}
			}
			if told := append(g.from.executed(), g.to.executed()...); len(told) > 0 {
				t.Errorf("the hubs were told %v", told)
			}
		})
	}
}

// fast is a clock that runs faster.
type fast struct {
	began  time.Time
	factor float64
}

func (f fast) Now() time.Time {
	return f.began.Add(time.Duration(float64(time.Since(f.began)) * f.factor))
}

func (f fast) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// TestManagerReportsWhatTheBrokerRefuses: a missing ACL is in the status, with the topic.
//
// Matrix: H36.
func TestManagerReportsWhatTheBrokerRefuses(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	g.forbidden = message.SpecTopic(g.from.hub)
	key := g.migrate("move", "c1")
	p := g.start(nil, key)
	defer p.stop()
	m := g.await(key, "the migration has failed", settled)
	c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
	if m.Status.Phase != api.PhaseFailed || c.Reason != api.ReasonBrokerRefused.Name || !strings.Contains(c.Message, "write topic "+g.forbidden) {
		t.Errorf("phase %s:\n%s", m.Status.Phase, describe(m))
	}
	if told := append(g.from.executed(), g.to.executed()...); len(told) > 0 {
		t.Errorf("the hubs were told %v", told)
	}
}

// forbidding is a broker without one ACL.
type forbidding struct {
	manager.Transport
	topic string
}

func (f forbidding) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	if topic == f.topic {
		return &kafka.ForbiddenError{Client: "manager", Operation: "write", Topic: topic, Err: errors.New("denied")}
	}
	return f.Transport.Send(ctx, topic, key, e)
}

// TestManagerSaysWhichCommandIsNotSent: when clusters have begun to change hubs, a command that the broker
// refuses does not end the migration. The status and an event name it, until the broker takes it.
//
// Matrix: H36.
func TestManagerSaysWhichCommandIsNotSent(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	acl := &revocable{topic: message.SpecTopic(g.from.hub)}
	g.through = func(t manager.Transport) manager.Transport {
		acl.Transport = t
		return acl
	}
	held, release := g.to.hold(hub.AcceptClusters)
	key := g.migrate("move", "c1")
	p := g.start(nil, key)
	defer p.stop()
	<-held
	acl.revoked.Store(true)
	_, register := g.to.hold(hub.AwaitRegistration) // no cluster registers before its source has released it
	release()
	reason := api.ReasonCommandNotSent
	m := g.await(key, "the status names the command", func(m *api.ManagedClusterMigration) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionReconciling)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason.Name
	})
	for _, kind := range []string{api.ConditionReconciling, api.ConditionRegistered} {
		c := meta.FindStatusCondition(m.Status.Conditions, kind)
		if c == nil || c.Reason != reason.Name || !strings.Contains(c.Message, "the source hub") || !strings.Contains(c.Message, "write topic "+acl.topic) {
			t.Errorf("condition %s is %+v, want %s with the hub and the topic", kind, c, reason)
		}
	}
	if m.Status.Phase != api.PhaseRegistering {
		t.Errorf("the migration is in phase %s, want Registering", m.Status.Phase)
	}
	acl.revoked.Store(false)
	register()
	g.mustBeMoved(g.await(key, "the cluster has moved", settled))
	g.mustAnnounce(corev1.EventTypeWarning, reason)
}

// revocable is a broker whose administrator removes one ACL, and grants it again.
type revocable struct {
	manager.Transport
	topic   string
	revoked atomic.Bool
}

func (r *revocable) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	if r.revoked.Load() {
		return forbidding{r.Transport, r.topic}.Send(ctx, topic, key, e)
	}
	return r.Transport.Send(ctx, topic, key, e)
}

// TestManagerRefusesTheCRDOfOthers: the annotation tells ours.
//
// Matrix: H13.
func TestManagerRefusesTheCRDOfOthers(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	if err := manager.CheckCRD(t.Context(), c); err != nil {
		t.Errorf("our own CRD: %v", err)
	}
	without := interceptor.NewClient(newWithWatch(t), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			o.SetAnnotations(nil)
			return err
		},
	})
	if err := manager.CheckCRD(t.Context(), without); err == nil || !strings.Contains(err.Error(), "another project's") {
		t.Errorf("a CRD without the annotation: %v", err)
	}
}

func newWithWatch(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(shared.Config(), client.Options{Scheme: globalScheme(), Mapper: hubMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
