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

// Receipt records what the manager has received from the agent of a hub, by the manager's clock. Decisions use the
// receipts in memory only: a manager that starts waits for the next heartbeat.
type Receipt struct {
	// CaughtUp is when the manager had read all messages that were in the status topic at its start; zero until then.
	// Earlier arrivals may be old.
	CaughtUp time.Time `json:"listening,omitzero"`
	// Heartbeat is when the last heartbeat was received; zero if none was.
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	// Versions are the message versions that the agent reads.
	Versions []int `json:"versions,omitempty"`
	// Refused is why the broker denies the manager to read the topic; empty if it allows it.
	Refused string `json:"refused,omitempty"`
}

// Waits reports whether it is too early to miss a heartbeat.
func (r Receipt) Waits(now time.Time) bool {
	return r.Heartbeat.IsZero() && (r.CaughtUp.IsZero() || now.Sub(r.CaughtUp) <= maxHeartbeatAge)
}

// Problem returns why the agent of a hub can't take part in a migration, or empty.
func (r Receipt) Problem(hub string, now time.Time) string {
	if r.Heartbeat.IsZero() || now.Sub(r.Heartbeat) > maxHeartbeatAge {
		return fmt.Sprintf("the agent of hub %s has sent no heartbeat for %s: see whether it runs and reaches the brokers", hub, maxHeartbeatAge)
	}
	if _, ok := message.CommonVersion([]int{message.Version}, r.Versions); !ok {
		return fmt.Sprintf("the agent of hub %s reads versions %v of messages, and the manager writes version %d: upgrade the older of the two", hub, r.Versions, message.Version)
	}
	return ""
}

// receipts has the receipts of all hubs.
type receipts struct {
	mutex sync.Mutex
	byHub map[string]Receipt
}

func (p *receipts) get(hub string) Receipt {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.byHub[hub]
}

// all returns a copy of the receipts.
func (p *receipts) all() map[string]Receipt {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return maps.Clone(p.byHub)
}

func (p *receipts) update(hub string, edit func(*Receipt)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.byHub == nil {
		p.byHub = map[string]Receipt{}
	}
	one := p.byHub[hub]
	edit(&one)
	p.byHub[hub] = one
}

// addHeartbeat records a heartbeat. A heartbeat also shows that the broker allows the manager to read the topic.
func (p *receipts) addHeartbeat(hub string, versions []int, now time.Time) {
	p.update(hub, func(one *Receipt) {
		if !one.CaughtUp.IsZero() {
			one.Heartbeat, one.Versions, one.Refused = now, slices.Clone(versions), ""
		}
	})
}

// hasCaughtUp reports whether the manager has read all messages of a hub from before its start.
func (p *receipts) hasCaughtUp(hub string) bool { return !p.get(hub).CaughtUp.IsZero() }
