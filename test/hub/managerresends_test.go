package hub_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// TestManagerSendsAgain a command without an answer at a third and at two thirds of the time, and
// ends the phase when it is over.
func TestManagerSendsAgain(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	clock := &leaping{}
	g.clock = clock
	held, release := g.from.hold(hub.InstallBootstrap)
	defer release()
	key := g.migrate("move", "c1")
	p := g.start(nil, key)
	defer p.stop()
	<-held
	const third = 5 * time.Minute / 3
	for sent := 1; sent <= 2; sent++ {
		pause(t.Context(), 6*reconcileEvery) // a manager that sends too early shows it
		if got := g.count("commands_resent_total", g.from.hub); int(got) != sent-1 {
			t.Fatalf("after %d thirds of the time %v commands were sent again", sent-1, got)
		}
		clock.leap(third)
		select {
		case <-held:
		case <-time.After(patience):
			t.Fatalf("the command is not sent again after %d thirds of the time", sent)
		}
	}
	release() // the rollback is answered
	clock.leap(third)
	m := g.await(key, "the end of the migration", settled)
	// The answer may have come before the leap was seen.
	if m.Status.Phase == api.PhaseFailed && m.Status.Progress.Reason != api.ReasonTimeout.Name {
		t.Errorf("conditions:\n%s", describe(m))
	}
}

// TestManagerForwardsWhatIsMissing: the target names resources that did not arrive, and the source
// is told to send them again, but not before it has sent everything.
func TestManagerForwardsWhatIsMissing(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	sending, sent := g.from.hold(hub.SendResources)
	receiving, received := g.to.hold(hub.ReceiveResources)
	defer sent()
	defer received()
	key := g.migrate("move", "c1", "c2")
	p := g.start(nil, key)
	defer p.stop()
	<-sending
	<-receiving
	m := g.read(key)
	gap := message.Gap{ClusterName: "c2", First: 3, Objects: 7}
	name := func() {
		g.to.write(t.Context(), message.Header{
			Type: message.TypeStatus, Migration: string(m.UID), Stage: m.Status.Progress.Stage, Attempt: m.Status.Progress.Attempt,
		}, message.StatusBundle{Missing: []message.Gap{gap}})
	}
	name()
	pause(t.Context(), 10*reconcileEvery)
	if got := g.from.asked(); len(got) > 0 {
		t.Errorf("the source is asked for %v while it sends", got)
	}
	sent()
	deadline := time.Now().Add(patience)
	for len(g.from.asked()) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the source is not asked for what is missing")
		}
		name()
		pause(t.Context(), 100*time.Millisecond)
	}
	if got := g.from.asked()[0]; got != gap {
		t.Errorf("the source is asked for %+v, want %+v", got, gap)
	}
	received()
	g.mustBeMoved(g.await(key, "the clusters have moved", settled))
}

// asked are the resources that the source is asked for again.
func (a *scripted) asked() []message.Gap {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.missing)
}

// unreliable is a transport of the manager that loses the first command of each phase, and sends
// every other one twice, with the one before once more after it.
type unreliable struct {
	manager.Transport
	lost chan api.Phase

	mutex sync.Mutex
	seen  map[api.Phase]bool
	last  map[string]message.Envelope // by topic
}

func (u *unreliable) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	h, err := message.Peek(e)
	if err != nil {
		return err
	}
	u.mutex.Lock()
	known, before := u.seen[h.Stage], u.last[topic]
	u.seen[h.Stage] = true
	u.last[topic] = e
	u.mutex.Unlock()
	if !known {
		u.lost <- h.Stage
		return nil
	}
	for _, one := range []message.Envelope{e, e, before} {
		if one.Value == nil {
			continue
		}
		if err := u.Transport.Send(ctx, topic, key, one); err != nil {
			return err
		}
	}
	return nil
}

// TestManagerOverUnreliableTransport: commands are lost, doubled and late, and the clusters move, each
// by one execution of each command.
func TestManagerOverUnreliableTransport(t *testing.T) {
	t.Parallel()
	plain := newGlobalHub(t)
	key := plain.migrate("move", "c1", "c2")
	p := plain.start(nil, key)
	plain.mustBeMoved(plain.await(key, "the clusters have moved", settled))
	p.stop()

	g := newGlobalHub(t)
	clock := &leaping{}
	g.clock = clock
	u := &unreliable{lost: make(chan api.Phase, 100), seen: map[api.Phase]bool{}, last: map[string]message.Envelope{}}
	g.through = func(carrier manager.Transport) manager.Transport {
		u.Transport = carrier
		return u
	}
	key = g.migrate("move", "c1", "c2")
	p = g.start(nil, key)
	defer p.stop()
	lost := 0
	for !settled(g.read(key)) {
		select {
		case phase := <-u.lost:
			lost++
			// The manager stores that it has sent the command, and then a third of the time passes.
			pause(t.Context(), time.Second)
			clock.leap(hub.New(g.read(key).Spec).Timeouts.ForPhase(phase) / 3)
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(describe(g.read(key)))
		}
	}
	g.mustBeMoved(g.read(key))
	if lost < 4 {
		t.Errorf("%d commands were lost, so that the test proves little", lost)
	}
	if got, want := g.from.executed(), plain.from.executed(); !slices.Equal(got, want) {
		t.Errorf("the source executed %v, and without faults %v", got, want)
	}
	if got, want := g.to.executed(), plain.to.executed(); !slices.Equal(got, want) {
		t.Errorf("the target executed %v, and without faults %v", got, want)
	}
	if g.count("messages_duplicate_total") == 0 {
		t.Error("no report was counted as a duplicate")
	}
}
