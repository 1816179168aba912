package hub_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// phases are those in which both hubs get commands.
var phases = []api.Phase{api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering, api.PhaseCleaning}

// thirdOf returns a third of the timeout of a phase, and a second.
func thirdOf(phase api.Phase) time.Duration {
	timeouts := hub.Timeouts{}
	return timeouts.ForPhase(phase)/3 + time.Second
}

// halted is the transport of an agent that does not get past the first command of a phase: it is stopped before it has stored the command.
type halted struct {
	agent.Transport
	phase   api.Phase
	once    sync.Once
	reached chan struct{}
}

// haltIn makes the next agent of a hub halt in a phase.
func (m *managed) haltIn(s *hubSide, phase api.Phase) (reached <-chan struct{}) {
	h := &halted{Transport: m.connect(s.name), phase: phase, reached: make(chan struct{})}
	s.transport = h
	return h.reached
}

func (h *halted) Receive(ctx context.Context, group string, topics []string, handle func(context.Context, string, message.Envelope) error) error {
	return h.Transport.Receive(ctx, group, topics, func(ctx context.Context, topic string, e message.Envelope) error {
		if peeked, err := message.Peek(e); err == nil && peeked.From == message.ManagerName && peeked.Stage == h.phase {
			h.once.Do(func() { close(h.reached) })
			return errors.New("the agent is halted")
		}
		return handle(ctx, topic, e)
	})
}

// awaitHalt waits until an agent has halted.
func (m *managed) awaitHalt(reached <-chan struct{}) {
	m.t.Helper()
	select {
	case <-reached:
	case <-time.After(patience):
		m.t.Fatalf("waited %s for the phase:\n%s", patience, describe(m.g.read(m.key)))
	}
}

// enrollAs enrolls a hub with a key, as `godwit cluster enroll` does. A new key of the same hub replaces the one before.
func (m *managed) enrollAs(name string, key message.IdentityKey, sameHub bool) {
	m.t.Helper()
	hubs := &corev1.ConfigMap{}
	if err := m.g.c.Get(m.t.Context(), objectKey{Namespace: m.g.namespace, Name: manager.EnrolledHubs}, hubs); err != nil {
		m.t.Fatal(err)
	}
	var replaces []string
	if before, err := identity.Parse(hubs.Data[name]); err == nil && sameHub {
		replaces = []string{identity.Fingerprint(before)}
	}
	hubs.Data[name] = identity.Format(key)
	if err := manager.SetReplacement(hubs, name, key, replaces); err != nil {
		m.t.Fatal(err)
	}
	m.g.update(hubs)
}

func (m *managed) newIdentity() message.Identity {
	m.t.Helper()
	own, err := message.NewIdentity()
	if err != nil {
		m.t.Fatal(err)
	}
	return own
}

// mustRefuseKey fails the test unless the manager refuses what an old key of a hub has signed.
func (m *managed) mustRefuseKey(s *hubSide, old message.Identity) {
	m.t.Helper()
	progress := m.g.read(m.key).Status.Progress
	beat := message.Header{Type: message.TypeHeartbeat, From: s.name, To: message.ManagerName, ValidFor: time.Minute}
	report := message.Header{Type: message.TypeStatus, Migration: m.uid, From: s.name, To: message.ManagerName, Stage: progress.Stage, Attempt: progress.Attempt, ValidFor: time.Minute}
	m.attack(map[string]attack{
		"Heartbeat": {"A heartbeat with the old key.", message.StatusTopic(s.name), m.envelope(old, beat, message.Heartbeat{Hub: s.name, Versions: []int{message.Version}}), m.byManager(s, "Forged")},
		"Report":    {"A report with the old key.", message.StatusTopic(s.name), m.envelope(old, report, message.StatusBundle{Finished: true}), m.byManager(s, "Forged")},
	})
}

// TestAgentKeyReplaced: the key of an agent is replaced in each phase, before the agent has the command of the phase. What it says is refused
// until the hub is enrolled again. Its clusters then move with the new key, and what the old one signs is refused.
//
// Matrix: H114.
func TestAgentKeyReplaced(t *testing.T) {
	t.Parallel()
	for _, phase := range phases {
		for _, role := range []string{"Source", "Target"} {
			t.Run(string(phase)+"/"+role, func(t *testing.T) {
				t.Parallel()
				m := newManaged(t, 1)
				s, other := m.source, m.target
				if role == "Target" {
					s, other = other, s
				}
				reached := m.haltIn(s, phase)
				stop := m.run(s)
				m.run(other)
				m.begin()
				m.awaitHalt(reached)
				stop()

				old := s.identity
				s.identity, s.transport = m.newIdentity(), nil
				refused := m.byManager(s, "Forged")
				m.run(s)
				m.await("what the new key signs to be refused", func() bool { return refused() > 0 })
				m.enrollAs(s.name, s.identity.Key(), true)
				m.clock.leap(thirdOf(phase)) // commands are sent again
				m.end(api.PhaseCompleted)
				m.moved(m.sites[0], m.before[m.sites[0].name])
				m.mustRefuseKey(s, old)
			})
		}
	}
}

// TestManagerKeyReplaced: the key of the manager is replaced in each phase, while the source has a command that it has not read. Once the agents
// have the new key, they refuse that command, and the clusters move or return.
//
// Matrix: H115.
func TestManagerKeyReplaced(t *testing.T) {
	t.Parallel()
	for _, phase := range phases {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			m := newManaged(t, 1)
			reached := m.haltIn(m.source, phase)
			stopSource, stopTarget := m.run(m.source), m.run(m.target)
			m.create()
			p := m.g.start(nil, m.key)
			m.awaitHalt(reached)
			for _, stop := range []func(){p.stop, stopSource, stopTarget} {
				stop()
			}

			m.replaceManagerKey()
			m.source.transport = nil
			m.run(m.source)
			m.run(m.target)
			m.await("what the old key has signed to be refused", func() bool { return m.refused(m.source, "Forged") > 0 })
			m.clock.leap(thirdOf(phase))
			m.runManager(m.key)
			o := m.g.await(m.key, "the end of the migration", settled)
			m.mustHaveNoKeys()
			if o.Status.Phase == api.PhaseCompleted {
				m.moved(m.sites[0], m.before[m.sites[0].name])
				return
			}
			m.back(m.sites[0], m.before[m.sites[0].name])
			if c := meta.FindStatusCondition(o.Status.Conditions, api.ConditionStalled); c == nil || c.Reason != api.ReasonKeysChanged.Name || !strings.Contains(c.Message, "the key of the manager was replaced") {
				t.Errorf("phase %s, want %s:\n%s", o.Status.Phase, api.ReasonKeysChanged, describe(o))
			}
		})
	}
}

// replaceManagerKey does what a user does: it deletes the Secret, and the next manager makes another one.
func (m *managed) replaceManagerKey() {
	m.t.Helper()
	if err := m.g.c.Delete(m.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.g.namespace, Name: identity.Secret}}); err != nil {
		m.t.Fatal(err)
	}
	own, err := identity.Ensure(m.t.Context(), m.g.c, m.g.c, identity.Owner{Namespace: m.g.namespace, Name: message.ManagerName})
	if err != nil {
		m.t.Fatal(err)
	}
	m.g.manager, m.identity = own, own
}

// TestOtherHubUnderTheName: while a migration is under way, another hub gets the name of its target. The manager believes nothing that the other
// hub says of the migration, passes its keys to no hub, and says what to do. The other hub can't open what the source sends. With the former hub, the
// clusters move; without it, a deleted migration brings them back.
//
// Matrix: H116.
func TestOtherHubUnderTheName(t *testing.T) {
	t.Parallel()
	for _, phase := range []api.Phase{api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering} {
		for _, remedy := range []string{"FormerHub", "Deletion"} {
			t.Run(string(phase)+"/"+remedy, func(t *testing.T) {
				t.Parallel()
				m := newManaged(t, 1)
				reached := m.haltIn(m.target, phase)
				stop := m.run(m.target)
				m.run(m.source)
				m.begin()
				m.awaitHalt(reached)
				stop()

				other := m.newSide("other", shared.Config())
				other.name = m.target.name
				refused := m.byManager(m.target, "HubReplaced")
				m.enrollAs(other.name, other.identity.Key(), false)
				stopOther := m.run(other)
				m.await("what the other hub says to be refused", func() bool { return refused() > 0 })
				m.g.mustAnnounce(corev1.EventTypeWarning, api.ReasonHubReplaced)
				m.clock.leap(thirdOf(phase))
				m.g.await(m.key, "the status says what to do", func(o *api.ManagedClusterMigration) bool {
					c := meta.FindStatusCondition(o.Status.Conditions, "Reconciling")
					return c != nil && c.Reason == api.ReasonCommandNotSent.Name && strings.Contains(c.Message, "godwit cluster enroll "+m.target.name+" --same-hub") && strings.Contains(c.Message, "enroll the former hub again")
				})
				m.mustNotOpen(other, phase)
				stopOther()

				if remedy == "Deletion" {
					m.deleteWithout(m.target)
					return
				}
				m.enrollAs(m.target.name, m.target.identity.Key(), false)
				m.target.transport = nil
				m.run(m.target)
				m.end(api.PhaseCompleted)
				m.moved(m.sites[0], m.before[m.sites[0].name])
			})
		}
	}
}

// mustNotOpen fails the test if a hub can open what the source has sent, or if its key was passed on.
func (m *managed) mustNotOpen(other *hubSide, phase api.Phase) {
	m.t.Helper()
	secret := &corev1.Secret{}
	if err := other.c.Get(m.t.Context(), client.ObjectKey{Namespace: other.namespace, Name: "godwit-migration-" + m.uid}, secret); err != nil {
		m.t.Fatal(err)
	}
	sent := m.records(message.MigrationTopic(m.target.name))
	if phase != api.PhaseInitializing && len(sent) == 0 {
		m.t.Error("the source has sent nothing")
	}
	if len(secret.Data["key"]) == 0 {
		return // in Registering, an agent makes no key
	}
	key, err := message.ReadOpeningKey(secret.Data["key"])
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range sent {
		if _, _, err := message.Read(e, other.name, m.source.identity.Key(), &key); err == nil {
			m.t.Error("the other hub opens what the source sends")
		}
	}
	if passed := m.g.configMap(m.key, "-keys").BinaryData["targetSealingKey"]; bytes.Equal(passed, key.Key().Bytes()) {
		m.t.Error("the manager passes the key of the other hub on")
	}
}

// deleteWithout deletes the migration while a hub does not answer. Its clusters return to the source.
func (m *managed) deleteWithout(silent *hubSide) {
	m.t.Helper()
	if err := m.g.c.Delete(m.t.Context(), m.g.read(m.key)); err != nil {
		m.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; m.clock.leap(5 * time.Minute) {
		err := m.g.c.Get(m.t.Context(), m.key, &api.ManagedClusterMigration{})
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			m.t.Fatalf("the migration does not end: %v", err)
		}
		pause(m.t.Context(), 3*time.Second)
	}
	m.g.mustAnnounce(corev1.EventTypeWarning, api.ReasonLeftBehind)
	s := m.sites[0]
	if diff := cmp.Diff(asUserSees(m.before[s.name]), asUserSees(s.objects())); diff != "" {
		m.t.Errorf("%s on the source hub (-before +after):\n%s", s.name, diff)
	}
	if k := m.klusterlets[0]; k.Hub() != m.source.c || k.IsConfiguredBy(silent.c) {
		m.t.Error("the agent of the cluster is not at the source hub")
	}
}
