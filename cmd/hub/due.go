package hub

import (
	"fmt"
	"strings"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Effect is a task of the manager: a command to an agent, or an action of its own. It may be executed more than once.
type Effect struct {
	// Key identifies the effect: the same key is the same effect.
	Key string
	// Party is the party that acts. The manager executes its own effects, and sends the others.
	Party Party
	// Stage and Attempt of the command. Agents refuse an older one.
	Stage   api.Phase
	Attempt int64
	Orders  []Order
	// Until is when the phase ends, by the clock of the manager. A message has the remaining seconds instead.
	Until time.Time
}

// Due returns the effects of a state. It uses only what is stored, so a crash between the write of a state and its
// effects loses nothing. A command is due until [Sent], and again after each third of the timeout without a final
// report. An action of the manager is due until its [Report].
func Due(s State) []Effect {
	if s.Settled() {
		if s.Deleting {
			return []Effect{{Key: "finalizer", Party: Manager, Orders: []Order{{Action: RemoveFinalizer}}}}
		}
		return nil
	}
	var due []Effect
	for _, p := range s.parties() {
		if r := s.Record(p); r.Finished || p != Manager && r.Sent > s.Thirds {
			continue
		}
		if e, ok := CommandFor(s, p); ok {
			due = append(due, e)
		}
	}
	return due
}

// CommandFor returns the present command for a party, or false if the party has none. The manager sends the source's
// command again when the target reports missing objects, even if the source has finished.
func CommandFor(s State, p Party) (Effect, bool) {
	var orders []Order
	if s.walks() {
		orders = s.ordersByCluster(p)
	} else if t, ok := s.task(p); ok {
		orders = s.orders(t)
	}
	r := s.Record(p)
	if len(orders) == 0 && !s.stops(p, r) {
		return Effect{}, false
	}
	return Effect{
		Key:   fmt.Sprintf("%s/%d/%s/%d", strings.ToLower(string(r.Stage)), r.Attempt, string(p), s.Thirds),
		Party: p, Stage: r.Stage, Attempt: r.Attempt, Orders: orders, Until: s.until(),
	}, true
}

// stops reports whether a party gets a command without orders. It ends what the party still does for clusters that a user has told the
// migration to forget.
func (s State) stops(p Party, r Record) bool {
	if s.walks() {
		return r.Attempt > 0 && r.Sent == 0 && !r.Finished && s.hasClusterIn(Forgotten)
	}
	return p == Source && s.forgetsAtEnd()
}

// until returns until when a command may be executed. After the end of the phase, it has a third of the timeout: a lease is renewed twice
// within two minutes and a half.
func (s State) until() time.Time {
	return s.Since.Add(max(s.timeout(), time.Duration(s.Thirds+1)*(s.timeout()/3)))
}

// Deadline returns when a [Tick] changes the state, or false if time alone changes
// nothing.
func Deadline(s State) (time.Time, bool) {
	if s.Phase == api.PhasePending || s.Settled() {
		return time.Time{}, false
	}
	return s.Since.Add(time.Duration(s.Thirds+1) * (s.timeout() / 3)), true
}
