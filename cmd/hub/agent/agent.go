package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

const (
	// heartbeatValidity is how long a heartbeat is valid.
	heartbeatValidity = time.Minute
	// keyInterval is how often the agent looks for keys that nothing needs any more.
	keyInterval = time.Minute
	// maxReceivePause is between two attempts to receive, when the brokers refuse.
	maxReceivePause = 30 * time.Second
)

// CommandGroup is the consumer group in which the agent of a hub reads commands. ACLs name it.
func CommandGroup(hubName string) string { return "godwit-agent-" + hubName + "-commands" }

// ResourceGroup is the consumer group in which the agent of a hub reads resources. ACLs name it.
func ResourceGroup(hubName string) string { return "godwit-agent-" + hubName + "-resources" }

// starter starts an execution. The execution ends with the agent.
type starter func(m *migration, execute func(context.Context))

// Run resumes interrupted commands. Then it receives, executes and reports until the context ends. It returns an error
// only if the stored commands can't be read.
func (a *Agent) Run(ctx context.Context) error {
	all, newer, err := a.store.list(ctx)
	if err != nil {
		return err
	}
	a.newer = newer
	for uid, err := range newer {
		logr.FromContextOrDiscard(ctx).Error(err, "The agent takes no part in a migration", "migration", uid)
	}
	var executions sync.WaitGroup
	start := func(m *migration, execute func(context.Context)) { m.start(ctx, &executions, execute) }
	for uid, s := range all {
		m := a.migration(uid)
		s.task.Until = s.task.Until.Add(a.Paused)
		m.stored, m.resumed = s, true
		if s.task.finished() {
			// The report may have been stored and not sent.
			start(m, func(ctx context.Context) { a.answer(ctx, m) })
		} else {
			start(m, func(ctx context.Context) { a.run(ctx, m) })
		}
	}
	a.beginCounters(message.SpecTopic(a.Hub), message.MigrationTopic(a.Hub))
	var group sync.WaitGroup
	group.Go(func() { a.every(ctx, a.Heartbeat, a.sendHeartbeat) })
	group.Go(func() { a.every(ctx, keyInterval, a.dropKeys) })
	group.Go(func() {
		a.receive(ctx, CommandGroup(a.Hub), message.SpecTopic(a.Hub), func(ctx context.Context, topic string, e message.Envelope) error {
			return a.receiveCommand(ctx, topic, e, start)
		})
	})
	group.Go(func() { a.receive(ctx, ResourceGroup(a.Hub), message.MigrationTopic(a.Hub), a.receiveBundle) })
	group.Wait()
	executions.Wait()
	return nil
}

// every calls a function at an interval until the context ends.
func (a *Agent) every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	for ctx.Err() == nil {
		do(ctx)
		select {
		case <-ctx.Done():
		case <-a.Clock.After(interval):
		}
	}
}

func (a *Agent) sendHeartbeat(ctx context.Context) {
	data, err := message.Encode(message.Heartbeat{Hub: a.Hub, Versions: []int{message.Version}})
	if err == nil {
		var e message.Envelope
		h := message.Header{Type: message.TypeHeartbeat, From: a.Hub, To: message.ManagerName, ValidFor: heartbeatValidity}
		if e, err = message.Write(h, data, a.Identity, nil); err == nil {
			err = a.Transport.Send(ctx, message.StatusTopic(a.Hub), a.Hub, e)
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Could not send a heartbeat; without one for 60 s, migrations from and to this hub do not start")
		}
		return
	}
	a.Metrics.heartbeat.Set(float64(a.Clock.Now().Unix()))
}

// dropKeys deletes the keys of migrations that got no further command.
func (a *Agent) dropKeys(ctx context.Context) {
	a.mutex.Lock()
	var all []*migration
	for _, m := range a.migrations {
		all = append(all, m)
	}
	a.mutex.Unlock()
	for _, m := range all {
		if err := a.update(ctx, m, func(s *stored) bool {
			drop := s.key != nil && !s.task.keepsKey(a.Clock.Now())
			if drop {
				s.key = nil
			}
			return drop
		}); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Could not delete the key of a migration; the agent tries again", "migration", m.uid)
		}
	}
}

// receive receives a topic until the context ends.
func (a *Agent) receive(ctx context.Context, group, topic string, handle func(context.Context, string, message.Envelope) error) {
	pause := retryPause
	for ctx.Err() == nil {
		began := a.Clock.Now()
		err := a.Transport.Receive(ctx, group, []string{topic}, handle)
		if ctx.Err() != nil {
			return
		}
		if a.Clock.Since(began) > maxReceivePause {
			pause = retryPause
		}
		logr.FromContextOrDiscard(ctx).Error(err, "Could not receive messages; the agent tries again", "topic", topic, "after", pause.String())
		select {
		case <-ctx.Done():
		case <-a.Clock.After(pause):
		}
		pause = min(2*pause, maxReceivePause)
	}
}

// receiveCommand stores a new command and starts its execution. An error means that the command was not stored; the
// broker delivers it again.
func (a *Agent) receiveCommand(ctx context.Context, topic string, e message.Envelope, start starter) error {
	c, reason, err := a.readCommand(e)
	if err != nil {
		a.refuse(ctx, topic, e, reason, err.Error())
		return nil
	}
	if err := a.newer[c.header.Migration]; err != nil {
		a.refuse(ctx, topic, e, refusedNewer, err.Error())
		a.reportNewerFormat(ctx, c, err)
		return nil
	}
	m := a.migration(c.header.Migration)
	s := m.get()
	if s.task.Role != "" && s.task.Role != c.role {
		a.refuse(ctx, topic, e, refusedNotExpected, fmt.Sprintf("the hub is the %s of this migration, and the command is for the %s", s.task.Role, c.role))
		return nil
	}
	inbox, handling := s.task.Inbox.Receive(c.Command)
	switch handling {
	case hub.Ignore:
		last := s.task.Inbox.Last
		a.refuse(ctx, topic, e, refusedReplay, fmt.Sprintf("the last command of this migration has stage %s, attempt %d, and this one is older", last.Stage, last.Attempt))
	case hub.Repeat:
		a.Metrics.commands.WithLabelValues(string(handling)).Inc()
		if err := a.takeSourceKey(ctx, m, c.target); err != nil {
			return err
		}
		a.repeat(ctx, m, c, start)
	case hub.Execute:
		if err := a.accept(ctx, m, c, inbox); err != nil {
			return err
		}
		a.Metrics.commands.WithLabelValues(string(handling)).Inc()
		if m.notify() {
			return nil
		}
		m.stop()
		m.resumed = false
		start(m, func(ctx context.Context) { a.run(ctx, m) })
	}
	return nil
}

// reportNewerFormat reports that the agent does nothing for a migration of a newer release.
func (a *Agent) reportNewerFormat(ctx context.Context, c command, why error) {
	m := &migration{uid: c.header.Migration}
	report := hub.Report{Party: c.role, Stage: c.Stage, Attempt: c.Attempt, Finished: true, Error: failureOf(cluster.Explain(why))}
	if err := a.send(ctx, m, progress{report: report}); err != nil && ctx.Err() == nil {
		// The manager asks again.
		logr.FromContextOrDiscard(ctx).Error(err, "Could not send a report", "migration", m.uid)
	}
}

// accept stores a command. It stores a key of the migration too, as long as the migration needs one.
func (a *Agent) accept(ctx context.Context, m *migration, c command, inbox hub.Inbox) error {
	var key *message.OpeningKey
	if needsKey(c.Stage) {
		if key = m.get().key; key == nil {
			made, err := message.NewOpeningKey()
			if err != nil {
				return err
			}
			key = &made
		}
	}
	return a.update(ctx, m, func(s *stored) bool {
		s.task = task{Role: c.role, Inbox: inbox, Source: c.source, Target: c.target, Until: commandDeadline(a.Clock.Now(), c.header.ValidFor)}
		s.key = key
		return true
	})
}

// takeSourceKey stores the key of the source hub in a repeated command, if a user has replaced the key since. The command is the same otherwise.
func (a *Agent) takeSourceKey(ctx context.Context, m *migration, repeated *message.TargetBundle) error {
	return a.update(ctx, m, func(s *stored) bool {
		known := s.task.Target
		if known == nil || repeated == nil || repeated.SourceKeyNumber <= known.SourceKeyNumber {
			return false
		}
		next := *known
		next.SourceIdentity, next.SourceKeyNumber = repeated.SourceIdentity, repeated.SourceKeyNumber
		s.task.Target = &next
		return true
	})
}

// repeat answers a command that the agent has already. The manager repeats the command of the source when the target
// reports missing objects.
func (a *Agent) repeat(ctx context.Context, m *migration, c command, start starter) {
	if c.source == nil || len(c.source.Missing) == 0 {
		a.answer(ctx, m)
		return
	}
	// While the first execution runs, everything is sent anyway.
	if m.busy() || !m.get().task.finished() {
		return
	}
	start(m, func(ctx context.Context) {
		w := a.newWork(m)
		w.task.Source = c.source
		w.sendMissing(ctx, c.source.Missing)
	})
}

// receiveBundle accepts a bundle of resources, or holds the bundle until its command has arrived.
func (a *Agent) receiveBundle(ctx context.Context, topic string, e message.Envelope) error {
	h, err := message.Peek(e)
	if err != nil {
		a.refuse(ctx, topic, e, reasonOf(err), err.Error())
		return nil
	}
	into, why := a.arrivalsFor(h, e)
	switch {
	case why != "":
		a.refuse(ctx, topic, e, refusedNotExpected, why)
	case into != nil:
		a.open(ctx, a.find(h.Migration), into, e)
	}
	return ctx.Err()
}

// arrivalsFor returns the arrivals that a bundle belongs to, or why the bundle is refused. If it returns neither, the
// bundle is held.
func (a *Agent) arrivalsFor(h message.Header, e message.Envelope) (into *arrivals, why string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	m := a.migrations[h.Migration]
	if m != nil {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		last := m.stored.task.Inbox.Last
		switch {
		case m.stored.task.Role == hub.Source:
			return nil, "the hub is the source of this migration"
		case m.arrivals != nil && h.Attempt == last.Attempt:
			return m.arrivals, ""
		case h.Attempt <= last.Attempt && !executes(m.stored.task):
			return nil, fmt.Sprintf("the hub does not take resources of attempt %d any more", h.Attempt)
		}
	}
	now := a.Clock.Now()
	a.held.add(heldBundle{migration: h.Migration, envelope: e, until: now.Add(h.ValidFor)}, now)
	return nil, ""
}

// executes reports whether the last command will need resources soon.
func executes(t task) bool {
	return !t.finished() && t.Inbox.Last.Stage == api.PhaseDeploying &&
		slices.ContainsFunc(t.Inbox.Last.Orders, func(o hub.Order) bool { return o.Action == hub.ReceiveResources })
}
