package manager

import (
	"sync"
	"time"
)

// pulse is what is known of the agent of a hub. It is not stored: a manager that starts
// waits for the next heartbeat.
type pulse struct {
	// reading is when all was read that was in the status topic when the manager started;
	// zero until then. What arrives before may be old.
	reading time.Time
	// beat is when the last heartbeat was received.
	beat     time.Time
	versions []int
	// refused is why the broker does not let the manager read the topic, if it does not.
	refused string
}

// pulses are those of all hubs.
type pulses struct {
	mutex sync.Mutex
	byHub map[string]pulse
}

func (p *pulses) of(hub string) pulse {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.byHub[hub]
}

func (p *pulses) change(hub string, edit func(*pulse)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.byHub == nil {
		p.byHub = map[string]pulse{}
	}
	one := p.byHub[hub]
	edit(&one)
	p.byHub[hub] = one
}

// beat takes a heartbeat.
func (p *pulses) beat(hub string, versions []int, now time.Time) {
	p.change(hub, func(one *pulse) {
		if !one.reading.IsZero() {
			one.beat, one.versions = now, versions
		}
	})
}

// read reports whether the manager knows all that a hub has said before it started.
func (p *pulses) read(hub string) bool { return !p.of(hub).reading.IsZero() }
