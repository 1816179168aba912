package main

import (
	"context"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/bench/internal/result"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/walk"
)

// meter reads the CPU time and the requests of the servers so far.
type meter struct {
	requests        *account.Requests
	apiServer, etcd int // process ids
	idle            reading
}

type reading struct {
	time            time.Time
	requests        int64
	apiServer, etcd float64 // seconds of CPU time
}

func newMeter(requests *account.Requests) (m *meter, err error) {
	m = &meter{requests: requests}
	if m.apiServer, err = proc.Child("kube-apiserver"); err != nil {
		return nil, err
	}
	m.etcd, err = proc.Child("etcd")
	return m, err
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

// idleTime is the time for which the servers are measured without work.
const idleTime = 5 * time.Second

// measureIdle measures the CPU time of the idle servers per second.
func (m *meter) measureIdle(ctx context.Context) error {
	before, err := m.cpu(0)
	if err != nil {
		return err
	}
	if err := walk.Wait(ctx, idleTime); err != nil {
		return err
	}
	after, err := m.cpu(0)
	m.idle.apiServer = (after.apiServer - before.apiServer) / after.time.Sub(before.time).Seconds()
	m.idle.etcd = (after.etcd - before.etcd) / after.time.Sub(before.time).Seconds()
	return err
}

// measure measures work on objects, also if the work ends with an error.
func (m *meter) measure(ctx context.Context, t *result.Turn, r *widget.Resource, work func() error) error {
	old, err := r.Old(ctx)
	if err != nil {
		return err
	}
	before, err := m.read(ctx)
	if err != nil {
		return err
	}
	failed := work()
	after, err := m.cpu(0) // the process continues if the limit has ended the work
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
	t.Objects, t.Seconds = old-left, after.time.Sub(before.time).Seconds()
	if t.Objects > 0 {
		n := float64(t.Objects)
		t.Cost = result.Cost{
			PerSecond: n / t.Seconds, Requests: float64(counts.Total()-before.requests) / n,
			APIServer: 1000 * (after.apiServer - before.apiServer - m.idle.apiServer*t.Seconds) / n,
			Etcd:      1000 * (after.etcd - before.etcd - m.idle.etcd*t.Seconds) / n,
		}
	}
	return failed
}
