package main

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// turn is one migration by one contestant.
type turn struct {
	Round      int     `json:"round"`
	Contestant string  `json:"contestant"`
	Objects    int     `json:"objects"` // that it has migrated
	Seconds    float64 `json:"seconds"`
	Cost
	Limited bool   `json:"limited,omitempty"` // ended by the limit
	Claim   string `json:"claim,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Cost is what one object costs.
type Cost struct {
	PerSecond float64 `json:"objectsPerSecond"`
	Requests  float64 `json:"requestsPerObject"`
	APIServer float64 `json:"apiServerMillisecondsPerObject"` // CPU time
	Etcd      float64 `json:"etcdMillisecondsPerObject"`      // CPU time
}

// meter reads what the servers have done so far.
type meter struct {
	requests        *account.Requests
	apiServer, etcd int // process ids
	idle            reading
}

type reading struct {
	at              time.Time
	requests        int64
	apiServer, etcd float64 // seconds of CPU time
}

func newMeter(requests *account.Requests) (*meter, error) {
	m := &meter{requests: requests}
	for program, pid := range map[string]*int{"kube-apiserver": &m.apiServer, "etcd": &m.etcd} {
		pids, err := proc.Children(program)
		if err != nil {
			return nil, err
		}
		if len(pids) != 1 {
			return nil, fmt.Errorf("find the process of %s: there are %d", program, len(pids))
		}
		*pid = pids[0]
	}
	return m, nil
}

func (m *meter) read(ctx context.Context) (reading, error) {
	counts, err := m.requests.Read(ctx)
	if err != nil {
		return reading{}, err
	}
	return m.cpu(counts.Total())
}

func (m *meter) cpu(requests int64) (reading, error) {
	server, err := proc.UsageOf(m.apiServer)
	if err != nil {
		return reading{}, err
	}
	etcd, err := proc.UsageOf(m.etcd)
	if err != nil {
		return reading{}, err
	}
	return reading{time.Now(), requests, server.CPU, etcd.CPU}, nil
}

// idleTime is how long the servers are measured without work.
const idleTime = 5 * time.Second

// measureIdle finds what the servers use in a second in which nothing happens.
func (m *meter) measureIdle(ctx context.Context) error {
	before, err := m.cpu(0)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(idleTime):
	}
	after, err := m.cpu(0)
	m.idle.apiServer = (after.apiServer - before.apiServer) / after.at.Sub(before.at).Seconds()
	m.idle.etcd = (after.etcd - before.etcd) / after.at.Sub(before.at).Seconds()
	return err
}

// take measures work on objects, of which it returns how many it migrated.
func (m *meter) take(ctx context.Context, t *turn, r *widget.Resource, work func() error) error {
	old, err := r.Old(ctx)
	if err != nil {
		return err
	}
	before, err := m.read(ctx)
	if err != nil {
		return err
	}
	failed := work()
	after, err := m.cpu(0) // the process goes on where it ended by the limit
	if err != nil {
		return err
	}
	counts, err := m.requests.Read(ctx)
	if err != nil {
		return err
	}
	left, err := r.Old(ctx)
	if err != nil {
		return err
	}
	t.Objects, t.Seconds = old-left, after.at.Sub(before.at).Seconds()
	if t.Objects > 0 {
		n := float64(t.Objects)
		t.Cost = Cost{
			PerSecond: n / t.Seconds, Requests: float64(counts.Total()-before.requests) / n,
			APIServer: 1000 * (after.apiServer - before.apiServer - m.idle.apiServer*t.Seconds) / n,
			Etcd:      1000 * (after.etcd - before.etcd - m.idle.etcd*t.Seconds) / n,
		}
	}
	return failed
}

func (t turn) say() {
	switch {
	case t.Error != "":
		measure.Say("round %d: %-13s failed: %s", t.Round, t.Contestant, t.Error)
	case t.Limited:
		measure.Say("round %d: %-13s %5.0f objects/s, over the %d objects of the first %.0f s", t.Round, t.Contestant, t.PerSecond, t.Objects, t.Seconds)
	default:
		measure.Say("round %d: %-13s %5.0f objects/s, %.2f requests, %.2f ms of kube-apiserver and %.2f ms of etcd per object",
			t.Round, t.Contestant, t.PerSecond, t.Requests, t.APIServer, t.Etcd)
	}
}

func rawName(width int) string { return fmt.Sprintf("raw-%d", width) }
