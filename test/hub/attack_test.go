package hub_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// skewed is a clock that is wrong.
type skewed struct {
	clock.RealClock
	by time.Duration
}

func (s skewed) Now() time.Time                  { return s.RealClock.Now().Add(s.by) }
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// skew is by how much the clocks of the hubs differ from that of the global hub, in both directions.
const skew = 10 * time.Minute

// attack is a message that one of the parties refuses.
type attack struct {
	reason string
	topic  string
	what   message.Envelope
	// refused counts the refusals that the attack must add one to.
	refused func() int
}

// changed is a message of which an attacker has changed attributes, with the identifier that follows from them.
func changed(e message.Envelope, attributes map[string]string) message.Envelope {
	forged := message.Envelope{Attributes: maps.Clone(e.Attributes), Value: slices.Clone(e.Value)}
	maps.Copy(forged.Attributes, attributes)
	a := forged.Attributes
	a["ce_id"] = fmt.Sprintf("%s/%s/%s/%s/%s", a["ce_migrationid"], a["ce_stage"], a["ce_attempt"], a["ce_source"], a["ce_batch"])
	return forged
}

// byAgent and byManager count refusals.
func (m *managed) byAgent(s *hubSide, reason string) func() int {
	return func() int { return m.refused(s, reason) }
}

func (m *managed) byManager(s *hubSide, reason string) func() int {
	return func() int { return int(m.g.count("messages_refused_total", s.name, reason)) }
}

// attack sends each message, and fails the test unless it is refused.
func (m *managed) attack(attacks map[string]attack) {
	m.t.Helper()
	for name, a := range attacks {
		known := a.refused()
		if err := m.kafka.Send(m.t.Context(), a.topic, m.uid, a.what); err != nil {
			m.t.Fatal(err)
		}
		m.await(name+": "+a.reason+" To be refused", func() bool { return a.refused() > known })
	}
}

// TestAttacks: a hub and a broker that are compromised attack a migration by the manager and
// two agents. Each attack is refused and counted, and the migration ends as without one. Then
// bundles of it are used in another migration. No secret of either is visible to another party,
// though the clocks of the hubs are wrong by ten minutes.
//
// Matrix: H31, H44, H45, H46, H47, H48, H50, H51, H59.
func TestAttacks(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 2)
	m.source.clock, m.target.clock = skewed{by: -skew}, skewed{by: skew}
	m.run(m.source)
	m.run(m.target)
	before := m.objects()
	first, second := objectKey{Namespace: m.g.namespace, Name: "first"}, objectKey{Namespace: m.g.namespace, Name: "second"}
	m.runManager(first, second)
	m.g.migrate(first.Name, m.sites[0].name)
	uid := string(m.g.read(first).UID)

	// Without its klusterlet, the migration waits in Initializing.
	commands := m.awaitCommands(m.source, uid, 2)
	m.g.await(first, "the source installs the bootstrap", func(o *api.ManagedClusterMigration) bool { return o.Status.Phase == api.PhaseInitializing })
	was := m.g.read(first).Status
	m.attack(m.attacksOnTheSource(uid, commands[0], commands[1]))
	m.attack(m.attacksOnTheManager(uid))
	if now := m.g.read(first).Status; now.Phase != api.PhaseInitializing || now.Progress.Attempt != was.Progress.Attempt {
		t.Errorf("the attacks took the migration from %s, attempt %d to %s, attempt %d", was.Phase, was.Progress.Attempt, now.Phase, now.Progress.Attempt)
	}
	m.mustSeeNoSecret("in Initializing", m.statusOf(first))
	play(t, m.klusterlets[0])
	m.mustComplete(first)
	m.moved(m.sites[0], before[m.sites[0].name])

	bundles := m.records(message.MigrationTopic(m.target.name))
	if len(bundles) == 0 {
		t.Fatal("the first migration has sent no bundle")
	}
	m.attack(map[string]attack{"OldBundle": {
		"A bundle of a migration that has ended.", message.MigrationTopic(m.target.name), bundles[0], m.byAgent(m.target, "NotExpected"),
	}})
	m.g.migrate(second.Name, m.sites[1].name)
	uid = string(m.g.read(second).UID)
	m.awaitCommands(m.source, uid, 2)
	// The bundle arrives before its command, so that it is held until it can be checked.
	forged := m.refused(m.target, "Forged")
	if err := m.kafka.Send(t.Context(), message.MigrationTopic(m.target.name), uid, changed(bundles[0], map[string]string{"ce_migrationid": uid})); err != nil {
		t.Fatal(err)
	}
	play(t, m.klusterlets[1])
	m.mustComplete(second)
	m.moved(m.sites[1], before[m.sites[1].name])
	if m.refused(m.target, "Forged") != forged+1 {
		t.Error("a bundle of another migration was not refused as forged")
	}
	m.mustSeeNoSecret("after both migrations", m.statusOf(second))
}

// mustComplete waits until all clusters of a migration have moved.
func (m *managed) mustComplete(key objectKey) {
	m.t.Helper()
	o := m.g.await(key, "the clusters have moved", settled)
	if o.Status.Phase != api.PhaseCompleted || o.Status.Counts.Moved != o.Status.Counts.Total {
		m.t.Fatalf("phase %s, counts %+v:\n%s", o.Status.Phase, o.Status.Counts, describe(o))
	}
}

// attacksOnTheSource are messages in the topic of commands, of which the source has got two.
func (m *managed) attacksOnTheSource(uid string, first, last message.Envelope) map[string]attack {
	cleaning := message.SourceBundle{
		Command: hub.Command{Stage: api.PhaseCleaning, Attempt: 100, Orders: []hub.Order{{Action: hub.DeleteMoved, Clusters: []string{m.sites[0].name}}}},
		ToHub:   m.target.name,
	}
	header := message.Header{Type: message.TypeSource, Migration: uid, From: message.ManagerName, To: m.source.name, Stage: api.PhaseCleaning, Attempt: 100, ValidFor: time.Minute}
	own := header
	own.From = m.target.name
	attacks := map[string]attack{}
	add := func(name, reason, refusal string, e message.Envelope) {
		attacks[name] = attack{reason, message.SpecTopic(m.source.name), e, m.byAgent(m.source, refusal)}
	}
	add("ForgedCleaning", "The target signs a Cleaning that claims to be the manager's.", "Forged", m.envelope(m.target.identity, header, cleaning))
	add("OwnCleaning", "The target sends a Cleaning in its own name.", "Forged", m.envelope(m.target.identity, own, cleaning))
	add("Replayed", "A command of the manager is sent again.", "Replayed", first)
	add("OldAttempt", "An old command gets a new attempt.", "Forged", changed(first, map[string]string{"ce_attempt": "100"}))
	add("OtherStage", "The present command gets another stage.", "Forged", changed(last, map[string]string{"ce_stage": "Cleaning", "ce_attempt": "100"}))
	add("OtherMigration", "The present command gets another migration.", "Forged", changed(last, map[string]string{"ce_migrationid": "another"}))
	add("Longer", "The present command is valid for longer.", "Forged", changed(last, map[string]string{"ce_expiretime": "86400"}))
	add("Version", "The present command gets another version of the envelope.", "UnknownVersion", changed(last, map[string]string{"ce_envelopeversion": "0"}))
	add("Unsigned", "A command without a signature.", "Forged", changed(last, map[string]string{"ce_signature": ""}))
	return attacks
}

// attacksOnTheManager are messages in the topics of reports.
func (m *managed) attacksOnTheManager(uid string) map[string]attack {
	beat := message.Header{Type: message.TypeHeartbeat, From: m.source.name, To: message.ManagerName, ValidFor: time.Minute}
	own := beat
	own.From = m.target.name
	present := m.g.read(objectKey{Namespace: m.g.namespace, Name: "first"}).Status.Progress
	report := message.Header{Type: message.TypeStatus, Migration: uid, From: m.source.name, To: message.ManagerName, Stage: present.Stage, Attempt: present.Attempt, ValidFor: time.Minute}
	claims := message.Heartbeat{Hub: m.source.name, Versions: []int{message.Version}}
	done := message.StatusBundle{Finished: true, Done: []string{m.sites[0].name}}
	attacks := map[string]attack{
		"Heartbeat":      {"The target signs a heartbeat of the source.", "", m.envelope(m.target.identity, beat, claims), m.byManager(m.source, "Forged")},
		"Report":         {"The target signs a report of the source.", "", m.envelope(m.target.identity, report, done), m.byManager(m.source, "Forged")},
		"HeartbeatThere": {"The target sends a heartbeat of the source in its own topic.", message.StatusTopic(m.target.name), m.envelope(m.target.identity, beat, claims), m.byManager(m.target, "WrongHub")},
		"HeartbeatClaim": {"The target signs, as itself, that the source is alive.", message.StatusTopic(m.target.name), m.envelope(m.target.identity, own, claims), m.byManager(m.target, "WrongHub")},
	}
	for _, e := range m.records(message.StatusTopic(m.source.name)) {
		switch {
		case e.Attributes["ce_type"] == string(message.TypeHeartbeat):
			attacks["Downgrade"] = attack{"A heartbeat lists other versions.", "", message.Envelope{
				Attributes: e.Attributes, Value: fmt.Appendf(nil, `{"hub":%q,"versions":[0]}`, m.source.name),
			}, m.byManager(m.source, "Forged")}
		case e.Attributes["ce_stage"] == string(api.PhaseValidating):
			attacks["ReportAgain"] = attack{"A report on an earlier command is sent again.", "", e, m.byManager(m.source, "Outdated")}
		}
	}
	if len(attacks) != 6 {
		m.t.Errorf("%d attacks on the manager, want 6: the source has sent no heartbeat or no report", len(attacks))
	}
	for name, a := range attacks {
		if a.topic == "" {
			a.topic = message.StatusTopic(m.source.name)
			attacks[name] = a
		}
	}
	return attacks
}
