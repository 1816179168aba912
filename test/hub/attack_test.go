package hub_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/hub"
	api "github.com/godwit-dev/godwit/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/hub/message"
)

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
func (g *together) byAgent(s *hubSide, reason string) func() int {
	return func() int { return g.refused(s, reason) }
}

func (g *together) byManager(s *hubSide, reason string) func() int {
	return func() int { return int(g.g.count("messages_refused_total", s.name, reason)) }
}

// attack sends each message, and fails the test unless it is refused.
func (g *together) attack(attacks map[string]attack) {
	g.t.Helper()
	for name, a := range attacks {
		known := a.refused()
		if err := g.kafka.Send(g.t.Context(), a.topic, g.uid, a.what); err != nil {
			g.t.Fatal(err)
		}
		g.await(name+": "+a.reason+" To be refused", func() bool { return a.refused() > known })
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
	g := newTogether(t, 2)
	before := g.objects()
	first, second := objectKey{Namespace: g.g.namespace, Name: "first"}, objectKey{Namespace: g.g.namespace, Name: "second"}
	g.manage(first, second)
	g.g.migrate(first.Name, g.sites[0].name)
	uid := string(g.g.read(first).UID)

	// Without its klusterlet, the migration waits in Initializing.
	commands := g.awaitCommands(g.source, uid, 2)
	g.g.await(first, "the source installs the bootstrap", func(m *api.ManagedClusterMigration) bool { return m.Status.Phase == api.PhaseInitializing })
	was := g.g.read(first).Status
	g.attack(g.attacksOnTheSource(uid, commands[0], commands[1]))
	g.attack(g.attacksOnTheManager(uid))
	if now := g.g.read(first).Status; now.Phase != api.PhaseInitializing || now.Progress.Attempt != was.Progress.Attempt {
		t.Errorf("the attacks took the migration from %s, attempt %d to %s, attempt %d", was.Phase, was.Progress.Attempt, now.Phase, now.Progress.Attempt)
	}
	g.mustSeeNoSecret("in Initializing", g.statusOf(first))
	play(t, g.klusterlets[0])
	g.mustComplete(first)
	g.moved(g.sites[0], before[g.sites[0].name])

	bundles := g.records(message.MigrationTopic(g.target.name))
	if len(bundles) == 0 {
		t.Fatal("the first migration has sent no bundle")
	}
	g.attack(map[string]attack{"OldBundle": {
		"A bundle of a migration that has ended.", message.MigrationTopic(g.target.name), bundles[0], g.byAgent(g.target, "NotExpected"),
	}})
	g.g.migrate(second.Name, g.sites[1].name)
	uid = string(g.g.read(second).UID)
	g.awaitCommands(g.source, uid, 2)
	// The bundle arrives before its command, so that it is held until it can be checked.
	forged := g.refused(g.target, "Forged")
	if err := g.kafka.Send(t.Context(), message.MigrationTopic(g.target.name), uid, changed(bundles[0], map[string]string{"ce_migrationid": uid})); err != nil {
		t.Fatal(err)
	}
	play(t, g.klusterlets[1])
	g.mustComplete(second)
	g.moved(g.sites[1], before[g.sites[1].name])
	if g.refused(g.target, "Forged") != forged+1 {
		t.Error("a bundle of another migration was not refused as forged")
	}
	g.mustSeeNoSecret("after both migrations", g.statusOf(second))
}

// mustComplete waits until all clusters of a migration have moved.
func (g *together) mustComplete(key objectKey) {
	g.t.Helper()
	m := g.g.await(key, "the clusters have moved", settled)
	if m.Status.Phase != api.PhaseCompleted || m.Status.Counts.Moved != m.Status.Counts.Total {
		g.t.Fatalf("phase %s, counts %+v:\n%s", m.Status.Phase, m.Status.Counts, describe(m))
	}
}

// attacksOnTheSource are messages in the topic of commands, of which the source has got two.
func (g *together) attacksOnTheSource(uid string, first, last message.Envelope) map[string]attack {
	cleaning := message.SourceBundle{
		Command: hub.Command{Stage: api.PhaseCleaning, Attempt: 100, Orders: []hub.Order{{Action: hub.DeleteMoved, Clusters: []string{g.sites[0].name}}}},
		ToHub:   g.target.name,
	}
	header := message.Header{Type: message.TypeSource, Migration: uid, From: message.ManagerName, To: g.source.name, Stage: api.PhaseCleaning, Attempt: 100, Left: time.Minute}
	own := header
	own.From = g.target.name
	attacks := map[string]attack{}
	add := func(name, reason, refusal string, e message.Envelope) {
		attacks[name] = attack{reason, message.SpecTopic(g.source.name), e, g.byAgent(g.source, refusal)}
	}
	add("ForgedCleaning", "The target signs a Cleaning that claims to be the manager's.", "Forged", g.envelope(g.target.identity, header, cleaning))
	add("OwnCleaning", "The target sends a Cleaning in its own name.", "Forged", g.envelope(g.target.identity, own, cleaning))
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
func (g *together) attacksOnTheManager(uid string) map[string]attack {
	beat := message.Header{Type: message.TypeHeartbeat, From: g.source.name, To: message.ManagerName, Left: time.Minute}
	own := beat
	own.From = g.target.name
	present := g.g.read(objectKey{Namespace: g.g.namespace, Name: "first"}).Status.Progress
	report := message.Header{Type: message.TypeStatus, Migration: uid, From: g.source.name, To: message.ManagerName, Stage: present.Stage, Attempt: present.Attempt, Left: time.Minute}
	claims := message.Heartbeat{Hub: g.source.name, Versions: []int{message.Version}}
	done := message.StatusBundle{Finished: true, Done: []string{g.sites[0].name}}
	attacks := map[string]attack{
		"Heartbeat":      {"The target signs a heartbeat of the source.", "", g.envelope(g.target.identity, beat, claims), g.byManager(g.source, "Forged")},
		"Report":         {"The target signs a report of the source.", "", g.envelope(g.target.identity, report, done), g.byManager(g.source, "Forged")},
		"HeartbeatThere": {"The target sends a heartbeat of the source in its own topic.", message.StatusTopic(g.target.name), g.envelope(g.target.identity, beat, claims), g.byManager(g.target, "WrongHub")},
		"HeartbeatClaim": {"The target signs, as itself, that the source is alive.", message.StatusTopic(g.target.name), g.envelope(g.target.identity, own, claims), g.byManager(g.target, "WrongHub")},
	}
	for _, e := range g.records(message.StatusTopic(g.source.name)) {
		switch {
		case e.Attributes["ce_type"] == string(message.TypeHeartbeat):
			attacks["Downgrade"] = attack{"A heartbeat lists other versions.", "", message.Envelope{
				Attributes: e.Attributes, Value: fmt.Appendf(nil, `{"hub":%q,"versions":[0]}`, g.source.name),
			}, g.byManager(g.source, "Forged")}
		case e.Attributes["ce_stage"] == string(api.PhaseValidating):
			attacks["ReportAgain"] = attack{"A report on an earlier command is sent again.", "", e, g.byManager(g.source, "Outdated")}
		}
	}
	if len(attacks) != 6 {
		g.t.Errorf("%d attacks on the manager, want 6: the source has sent no heartbeat or no report", len(attacks))
	}
	for name, a := range attacks {
		if a.topic == "" {
			a.topic = message.StatusTopic(g.source.name)
			attacks[name] = a
		}
	}
	return attacks
}
