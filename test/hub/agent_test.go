package hub_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// moved fails the test unless a cluster is at the target hub alone, with all that it had.
func (m *move) moved(s site, before map[string]string) {
	m.t.Helper()
	if left := s.objects(); len(left) != 1 || left["ConfigMap/not-moved"] == "" {
		m.t.Errorf("left of %s on the source hub: %v", s.name, left)
	}
	want := asUserSees(before)
	delete(want, "ConfigMap/not-moved")
	if diff := cmp.Diff(want, asUserSees(m.onTarget(s).objects())); diff != "" {
		m.t.Errorf("%s on the target hub (-before +after):\n%s", s.name, diff)
	}
	m.onTarget(s).returnIsGone()
}

// back fails the test unless a cluster is at the source hub alone, as it was.
func (m *move) back(s site, before map[string]string) {
	m.t.Helper()
	if diff := cmp.Diff(asUserSees(before), asUserSees(s.objects())); diff != "" {
		m.t.Errorf("%s on the source hub (-before +after):\n%s", s.name, diff)
	}
	if there := m.onTarget(s).objects(); len(there) > 0 {
		m.t.Errorf("%s on the target hub: %v", s.name, there)
	}
	m.onTarget(s).returnIsGone()
	for _, k := range m.klusterlets {
		if k.Name == s.name && k.Hub() != m.source.c {
			m.t.Errorf("the agent of %s is not at the source hub", s.name)
		}
	}
}

// objects of all sites, by the name of the cluster.
func (m *move) objects() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, s := range m.sites {
		all[s.name] = s.objects()
	}
	return all
}

// TestAgents: two agents move clusters between two real hubs, over a broker that sees no
// secret.
//
// Matrix: H60.
func TestAgents(t *testing.T) {
	t.Parallel()
	m := newMove(t, 3)
	before := m.objects()
	m.run(m.source)
	m.run(m.target)
	m.start()
	m.mustEnd(api.PhaseCompleted)
	for _, s := range m.sites {
		m.moved(s, before[s.name])
	}
	everything := strings.Join(append(m.values(), m.logs.text()...), "\n")
	for _, secret := range []string{"hunter2", "calvin", "eyJhbGciOi", "certificate-authority-data"} {
		if strings.Contains(everything, secret) {
			t.Errorf("the broker or a log has %q", secret)
		}
	}
	if !strings.Contains(everything, m.sites[0].name) {
		t.Error("the broker has no message about the clusters, so that the test proves nothing")
	}
}

// TestAgentsReturn: one cluster can't reach the target. It returns, and the others move.
//
// Matrix: H38.
func TestAgentsReturn(t *testing.T) {
	t.Parallel()
	m := newMove(t, 2)
	before := m.objects()
	m.state.Timeouts.Stage = 12 * time.Second
	m.klusterlets[1].Unreachable = true
	m.run(m.source)
	m.run(m.target)
	m.start()
	m.mustEnd(api.PhaseCompleted)
	m.moved(m.sites[0], before[m.sites[0].name])
	m.back(m.sites[1], before[m.sites[1].name])
	if m.state.Reason != api.ReasonPartiallyRegistered.Name {
		t.Errorf("the reason is %s, want %s", m.state.Reason, api.ReasonPartiallyRegistered.Name)
	}
}

// TestAgentsAbort: a user aborts in each phase, and everything is as it was.
//
// Matrix: H14.
func TestAgentsAbort(t *testing.T) {
	t.Parallel()
	for _, phase := range []api.Phase{api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			m := newMove(t, 2)
			before := m.objects()
			m.run(m.source)
			m.run(m.target)
			m.start()
			m.manage(func() bool {
				return m.state.Phase == phase && (phase != api.PhaseRegistering || m.klusterlets[0].IsConfiguredBy(m.target.c))
			})
			m.state = hub.Step(m.state, hub.Rollback{At: time.Now()})
			m.mustEnd(api.PhaseFailed)
			for _, s := range m.sites {
				m.back(s, before[s.name])
			}
		})
	}
}

// TestAgentsKilled: both agents are killed again and again, each time at a later write or a
// later message, and the migration ends as if they had not been.
//
// Matrix: H33.
func TestAgentsKilled(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*move, map[string]map[string]string){
		"Forward": func(m *move, before map[string]map[string]string) {
			m.mustEnd(api.PhaseCompleted)
			m.moved(m.sites[0], before[m.sites[0].name])
		},
		"Rollback": func(m *move, before map[string]map[string]string) {
			m.manage(func() bool { return m.klusterlets[0].IsConfiguredBy(m.target.c) })
			m.state = hub.Step(m.state, hub.Rollback{At: time.Now()})
			m.mustEnd(api.PhaseFailed)
			m.back(m.sites[0], before[m.sites[0].name])
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMove(t, 1)
			before := m.objects()
			source, target := m.live(m.source), m.live(m.target)
			m.start()
			end(m, before)
			if source() < 5 || target() < 5 {
				t.Errorf("the agents were killed %d and %d times, want at least 5", source(), target())
			}
			t.Logf("the agents were killed %d and %d times", source(), target())
		})
	}
}

// losing loses the first bundles of resources.
type losing struct {
	agent.Transport
	lose int
}

func (l *losing) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	if strings.HasPrefix(topic, "godwit.migration.") && l.lose > 0 {
		l.lose--
		return nil
	}
	return l.Transport.Send(ctx, topic, key, e)
}

// TestAgentsLoseBundles: the target names what did not arrive, and the source sends it again.
//
// Matrix: H26.
func TestAgentsLoseBundles(t *testing.T) {
	t.Parallel()
	m := newMove(t, 2)
	before := m.objects()
	m.source.transport = &losing{Transport: m.connect("source"), lose: 1}
	m.run(m.source)
	m.run(m.target)
	m.start()
	m.mustEnd(api.PhaseCompleted)
	for _, s := range m.sites {
		m.moved(s, before[s.name])
	}
	if m.relayed == 0 {
		t.Error("the target has named nothing as missing")
	}
}

// TestAgentsRefuse: no one but the manager commands an agent, and no one but the source hub of
// the command sends it resources.
//
// Matrix: H44, H45.
func TestAgentsRefuse(t *testing.T) {
	t.Parallel()
	m := newMove(t, 1)
	before := m.objects()
	m.run(m.source)
	m.run(m.target)
	play(t, m.klusterlets...)
	m.await("the klusterlet to register", func() bool { return m.klusterlets[0].Hub() == m.source.c })
	cleaning := message.SourceBundle{
		Command: hub.Command{Stage: api.PhaseCleaning, Attempt: 100, Orders: []hub.Order{{Action: hub.DeleteMoved, Clusters: names(m.klusterlets)}}},
		ToHub:   m.target.name,
	}
	header := message.Header{Type: message.TypeSource, Migration: m.uid, From: message.ManagerName, To: m.source.name, Stage: api.PhaseCleaning, Attempt: 100, ValidFor: time.Minute}
	refused := func(s *hubSide, reason string) func() bool {
		was := m.refused(s, reason)
		return func() bool { return m.refused(s, reason) > was }
	}

	// A hub signs Cleaning as itself, and as the manager.
	forged := refused(m.source, "Forged")
	m.put(m.source.name, m.envelope(m.target.identity, header, cleaning))
	m.await("a claim to be the manager to be refused", forged)
	// The agent logs a refusal after it has counted it.
	says := func() bool {
		return strings.Contains(strings.Join(m.logs.text(), "\n"), "the message claims to be the manager's, and is not signed by the key that was given to this agent")
	}
	for deadline := time.Now().Add(patience); !says() && time.Now().Before(deadline); {
		pause(t.Context(), awaitEvery)
	}
	if !says() {
		t.Errorf("the log does not say why the message was refused:\n%s", strings.Join(m.logs.text(), "\n"))
	}
	own := header
	own.From = m.target.name
	forged = refused(m.source, "Forged")
	m.put(m.source.name, m.envelope(m.target.identity, own, cleaning))
	m.await("the command of a hub to be refused", forged)

	// The manager's command to one hub is sent to the other.
	notOurs := refused(m.target, "NotForThisHub")
	m.put(m.target.name, m.envelope(m.identity, header, cleaning))
	m.await("a command for another hub to be refused", notOurs)
	m.back(m.sites[0], before[m.sites[0].name])
}

// TestAgentsRefuseReplays: commands of a migration that has ended are refused, also by an
// agent that has restarted since.
//
// Matrix: H46.
func TestAgentsRefuseReplays(t *testing.T) {
	t.Parallel()
	m := newMove(t, 1)
	before := m.objects()
	stop := m.run(m.source)
	m.run(m.target)
	m.start()
	m.manage(func() bool { return m.state.Phase == api.PhaseRegistering })
	m.manage(func() bool { return m.state.PlaceOf(m.state.Clusters[0]) == hub.AwaitRegistration })
	m.sendDue()
	release := m.sent[hub.Source]
	m.state = hub.Step(m.state, hub.Rollback{At: time.Now()})
	m.mustEnd(api.PhaseFailed)
	stop()
	m.run(m.source)
	was := m.refused(m.source, "Replayed")
	m.put(m.source.name, release)
	m.await("the command to be refused", func() bool { return m.refused(m.source, "Replayed") > was })
	m.back(m.sites[0], before[m.sites[0].name])
}

// TestAgentsBothWays: one agent is the source of one migration and the target of another, at
// the same time.
func TestAgentsBothWays(t *testing.T) {
	t.Parallel()
	there := newMove(t, 2)
	there.run(there.source)
	there.run(there.target)
	t.Run("Moves", func(t *testing.T) {
		moves := map[string]func(t *testing.T) *move{
			"There": func(t *testing.T) *move {
				there.t = t
				return there
			},
			"Back": func(t *testing.T) *move { return there.backwards(t, 2) },
		}
		for name, begin := range moves {
			m := begin(t)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m.t = t
				before := m.objects()
				m.start()
				m.mustEnd(api.PhaseCompleted)
				for _, s := range m.sites {
					m.moved(s, before[s.name])
				}
			})
		}
	})
}

// TestAgentsRefuseObjects: the source collects by a rule that the target does not have. The
// cluster fails with a reason, and returns.
//
// Matrix: H54.
func TestAgentsRefuseObjects(t *testing.T) {
	t.Parallel()
	m := newMove(t, 1)
	before := m.objects()
	m.source.rules = append(resource.Rules(), resource.Rule{Kind: "ConfigMap", Names: []string{"not-moved"}})
	m.run(m.source)
	m.run(m.target)
	m.start()
	m.mustEnd(api.PhaseFailed)
	m.back(m.sites[0], before[m.sites[0].name])
	if c := m.state.Clusters[0]; c.FailedIn != api.PhaseDeploying || !strings.HasPrefix(c.Failure.String(), "ObjectRefused: ConfigMap not-moved") {
		t.Errorf("the cluster failed in %s with %q, want ObjectRefused in Deploying", c.FailedIn, c.Failure)
	}
}

// TestAgentsRefuseResources: bundles that the source hub has not signed are refused, also if
// they wait for a command that makes them look right.
//
// Matrix: H52.
func TestAgentsRefuseResources(t *testing.T) {
	t.Parallel()
	m := newMove(t, 1)
	before := m.objects()
	stranger, err := message.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	key, err := message.NewOpeningKey()
	if err != nil {
		t.Fatal(err)
	}
	sealing := key.Key()
	// One of these is the attempt of Deploying.
	for attempt := range int64(20) {
		h := message.Header{Type: message.TypeResource, Migration: m.uid, From: m.source.name, To: m.target.name, Stage: api.PhaseDeploying, Attempt: attempt, ValidFor: time.Hour}
		e, err := message.Write(h, []byte("{}"), stranger, &sealing)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.kafka.Send(t.Context(), message.MigrationTopic(m.target.name), m.uid, e); err != nil {
			t.Fatal(err)
		}
	}
	m.run(m.source)
	m.run(m.target)
	m.start()
	m.mustEnd(api.PhaseCompleted)
	m.moved(m.sites[0], before[m.sites[0].name])
	if m.refused(m.target, "Forged") == 0 {
		t.Error("no bundle was refused as forged")
	}
}

// TestAgentsWithoutPermission: the agent names what it may not do, and the migration is rolled
// back.
func TestAgentsWithoutPermission(t *testing.T) {
	t.Parallel()
	m := newMove(t, 1)
	role := &rbacv1.ClusterRole{}
	if err := m.target.c.Get(t.Context(), client.ObjectKey{Name: "agent-of-" + m.target.name}, role); err != nil {
		t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "clusterrolebindings") })
	if err := m.target.c.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	m.run(m.source)
	m.run(m.target)
	m.start()
	m.manage(func() bool { return m.state.Phase == api.PhaseRollbacking })
	if text := m.state.Message; !strings.HasPrefix(text, "RequestRefused: ") || !strings.Contains(text, "clusterrolebindings") || !strings.Contains(text, "forbidden") {
		t.Errorf("the message is %q, want the permission that is missing", text)
	}
}
