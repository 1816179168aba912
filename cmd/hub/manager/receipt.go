package manager

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// maxHeartbeatAge is how old the last heartbeat of a hub may be when a migration starts, and
// how long a manager that has just started waits for one.
const maxHeartbeatAge = time.Minute

// Receipt is what the manager has received of the agent of a hub, by the manager's clock. It
// decides by the receipts in its memory: a manager that starts waits for the next heartbeat.
type Receipt struct {
	// Listening is when the manager had read all that was in the status topic when it started; zero
	// until then. What arrives before may be old.
	Listening time.Time `json:"listening,omitzero"`
	// Heartbeat is when the last heartbeat was received; zero for none.
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	// Versions of messages that the agent reads.
	Versions []int `json:"versions,omitempty"`
	// Refused is why the broker does not let the manager read the topic, if it does not.
	Refused string `json:"refused,omitempty"`
}

// Waits reports whether the manager has listened for too short a time to miss a heartbeat.
func (r Receipt) Waits(now time.Time) bool {
	return r.Heartbeat.IsZero() && (r.Listening.IsZero() || now.Sub(r.Listening) <= maxHeartbeatAge)
}

// Problem is why the agent of a hub takes part in no migration, or empty.
func (r Receipt) Problem(hub string, now time.Time) string {
	if r.Heartbeat.IsZero() || now.Sub(r.Heartbeat) > maxHeartbeatAge {
		return fmt.Sprintf("the agent of hub %s has sent no heartbeat for %s: see whether it runs and reaches the brokers", hub, maxHeartbeatAge)
	}
	if _, ok := message.Agree([]int{message.Version}, r.Versions); !ok {
		return fmt.Sprintf("the agent of hub %s reads versions %v of messages, and the manager writes version %d: upgrade the older of the two", hub, r.Versions, message.Version)
	}
	return ""
}

// receipts are those of all hubs.
type receipts struct {
	mutex sync.Mutex
	byHub map[string]Receipt
}

func (p *receipts) of(hub string) Receipt {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.byHub[hub]
}

// all returns a copy.
func (p *receipts) all() map[string]Receipt {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return maps.Clone(p.byHub)
}

func (p *receipts) change(hub string, edit func(*Receipt)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.byHub == nil {
		p.byHub = map[string]Receipt{}
	}
	one := p.byHub[hub]
	edit(&one)
	p.byHub[hub] = one
}

// beat takes a heartbeat. It shows as well that the broker lets the manager read the topic.
func (p *receipts) beat(hub string, versions []int, now time.Time) {
	p.change(hub, func(one *Receipt) {
		if !one.Listening.IsZero() {
			one.Heartbeat, one.Versions, one.Refused = now, slices.Clone(versions), ""
		}
	})
}

// listens reports whether the manager knows all that a hub has said before it started.
func (p *receipts) listens(hub string) bool { return !p.of(hub).Listening.IsZero() }
