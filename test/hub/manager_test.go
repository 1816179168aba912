package hub_test

import (
	"context"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// manage plays the manager: it hears the status topics, steps, and sends what is due, until
// the migration is settled or the condition holds.
func (m *move) manage(until func() bool) {
	m.t.Helper()
	for _, s := range []*hubSide{m.source, m.target} {
		if m.heard[s.name] {
			continue
		}
		m.heard[s.name] = true
		m.goes(func(ctx context.Context) {
			if err := m.kafka.Receive(ctx, "manager-of-"+m.uid, []string{message.StatusTopic(s.name)}, func(_ context.Context, _ string, e message.Envelope) error {
				return m.hear(s, e)
			}); ctx.Err() == nil {
				m.t.Errorf("status of %s: %v", s.name, err)
			}
		})
	}
	deadline := time.After(2 * patience)
	for !m.state.Settled() && !until() {
		m.sendDue()
		select {
		case e := <-m.events:
			m.learn(e)
		case <-time.After(100 * time.Millisecond):
			m.state = hub.Step(m.state, hub.Tick{At: time.Now()})
		case <-deadline:
			m.t.Fatalf("phase %s, turn %d, attempt %d, %s; %v", m.state.Phase, m.state.Turn, m.state.Attempt, m.state.Message, m.state.Clusters)
		}
	}
}

// status is what an agent says.
type status struct {
	hub.Report
	bundle message.StatusBundle
}

// hear reads a status.
func (m *move) hear(s *hubSide, e message.Envelope) error {
	party := hub.Source
	if s == m.target {
		party = hub.Target
	}
	h, data, err := message.Read(e, message.ManagerName, s.identity.Key(), nil)
	if err != nil || h.Type == message.TypeHeartbeat || h.Migration != m.uid {
		return err
	}
	b, err := message.Decode[message.StatusBundle](data)
	if err != nil {
		return err
	}
	m.events <- status{b.Report(h, party, time.Now()), b}
	return nil
}

// learn takes a status, and relays what the target has not got.
func (m *move) learn(e status) {
	if e.bundle.SealingKey != nil {
		m.sealing[e.Party] = e.bundle.SealingKey
	}
	if e.bundle.BootstrapSecret != nil {
		m.secret = e.bundle.BootstrapSecret
	}
	if s := m.state; len(e.bundle.Missing) > 0 && s.Stage == api.PhaseDeploying && e.Attempt == s.Attempt {
		m.relayed++
		m.send(hub.Effect{
			Party: hub.Source, Stage: s.Stage, Attempt: s.Attempt, Until: time.Now().Add(time.Minute),
			Orders: []hub.Order{{Action: hub.SendResources, Clusters: names(m.klusterlets)}},
		}, e.bundle.Missing)
	}
	m.state = hub.Step(m.state, e.Report)
}

func (m *move) sendDue() {
	m.t.Helper()
	for _, e := range hub.Due(m.state) {
		if e.Party == hub.Manager {
			m.state = hub.Step(m.state, hub.Report{At: time.Now(), Party: hub.Manager, Stage: e.Stage, Attempt: e.Attempt, Finished: true})
			return
		}
		m.send(e, nil)
		m.state = hub.Step(m.state, hub.Sent{At: time.Now(), Key: e.Key})
	}
}

const tokenLifetime = time.Hour

// send sends a command.
func (m *move) send(e hub.Effect, missing []message.Gap) {
	m.t.Helper()
	command := hub.Command{Stage: e.Stage, Attempt: e.Attempt, Orders: e.Orders}
	h := message.Header{Migration: m.uid, From: message.ManagerName, Stage: e.Stage, Attempt: e.Attempt, ValidFor: max(time.Until(e.Until), 0).Truncate(time.Second)}
	var bundle any
	if e.Party == hub.Source {
		h.Type, h.To = message.TypeSource, m.source.name
		bundle = message.SourceBundle{Command: command, ToHub: m.target.name, BootstrapSecret: m.secret, TargetSealingKey: m.sealing[hub.Target], ReconnectTimeoutSeconds: 180, Missing: missing, UserObjects: m.users}
	} else {
		h.Type, h.To = message.TypeTarget, m.target.name
		bundle = message.TargetBundle{
			Command: command, FromHub: m.source.name, ManagedServiceAccountName: "account-" + m.target.name, OwnAccount: true,
			SourceIdentity: m.source.identity.Key().Bytes(), SourceSealingKey: m.sealing[hub.Source], UserObjects: m.users,
			Bootstrap: &message.BootstrapRequest{Server: m.target.config.Host, CABundle: m.target.config.CAData, TokenLifetimeSeconds: int64(tokenLifetime.Seconds())},
		}
	}
	m.sent[e.Party] = m.envelope(m.identity, h, bundle)
	m.put(h.To, m.sent[e.Party])
}

// envelope is a command as it travels.
func (m *move) envelope(identity message.Identity, h message.Header, bundle any) message.Envelope {
	m.t.Helper()
	data, err := message.Encode(bundle)
	if err != nil {
		m.t.Fatal(err)
	}
	e, err := message.Write(h, data, identity, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return e
}

// put writes a message to the commands of a hub, as it is.
func (m *move) put(to string, e message.Envelope) {
	m.t.Helper()
	if err := m.kafka.Send(m.t.Context(), message.SpecTopic(to), m.uid, e); err != nil {
		m.t.Fatal(err)
	}
}
