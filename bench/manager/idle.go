package main

import (
	"context"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/walk"
)

// idle is the cost of the manager while no CRD needs a migration.
type idle struct {
	CRDs              int           `json:"crds"`
	Seconds           float64       `json:"seconds"`
	StartRequests     account.Count `json:"startRequests"` // before the others, until it was quiet
	Requests          account.Count `json:"requests"`
	RequestsPerMinute float64       `json:"requestsPerMinute"`
	// LeaseRenewals are updates of the leader's lease, one every two seconds.
	LeaseRenewals int64   `json:"leaseRenewals"`
	CPUSeconds    float64 `json:"cpuSeconds"`
	RSSMiB        float64 `json:"rssMiB"`
	PeakRSSMiB    float64 `json:"peakRSSMiB"`
}

func (b *bench) measureIdle(ctx context.Context) (i idle, err error) {
	if b.idle == 0 {
		return i, nil
	}
	if more := b.idleCRDs - b.CRDs; more > 0 {
		frame.Logf("defining %d more", more)
		if _, err := widget.Define(ctx, b.cluster, frame.Names("idle", more)...); err != nil {
			return i, err
		}
	}
	i.CRDs = max(b.idleCRDs, b.CRDs)
	before, err := b.cluster.Requests.Read(ctx)
	if err != nil {
		return i, err
	}
	err = b.withManager(ctx, configured, func(ctx context.Context, p *frame.Process) error {
		if err := b.awaitQuiet(ctx); err != nil {
			return err
		}
		begin, err := b.read(ctx, p)
		if err != nil {
			return err
		}
		frame.Logf("the manager watches %d clean CRDs for %s", i.CRDs, b.idle)
		if err := walk.Wait(ctx, b.idle); err != nil {
			return err
		}
		end, err := b.read(ctx, p)
		if err != nil {
			return err
		}
		took := end.time.Sub(begin.time)
		i.StartRequests, i.Requests = begin.requests.Since(before), end.requests.Since(begin.requests)
		i.LeaseRenewals = i.Requests["update"]
		i.Seconds, i.RequestsPerMinute = took.Seconds(), float64(i.Requests.Total())/took.Minutes()
		i.CPUSeconds, i.RSSMiB, i.PeakRSSMiB = end.usage.CPU-begin.usage.CPU, frame.MiB(end.usage.RSS), frame.MiB(end.usage.PeakRSS)
		return nil
	})
	return i, err
}
