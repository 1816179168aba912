package main

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// idle is what the manager costs while there is nothing to do.
type idle struct {
	CRDs              int           `json:"crds"`
	Seconds           float64       `json:"seconds"`
	StartRequests     account.Count `json:"startRequests"` // until it was quiet, and not part of the others
	Requests          account.Count `json:"requests"`
	RequestsPerMinute float64       `json:"requestsPerMinute"`
	// LeaseRenewals are updates of the leader's lease, one every two seconds: what
	// is left of the requests is ours.
	LeaseRenewals int64   `json:"leaseRenewals"`
	CPUSeconds    float64 `json:"cpuSeconds"`
	RSSMiB        float64 `json:"rssMiB"`
	PeakRSSMiB    float64 `json:"peakRSSMiB"`
}

func (b *bench) measureIdle(ctx context.Context) (i idle, err error) {
	if b.idle == 0 {
		return i, nil
	}
	if more := b.idleCRDs - b.crds; more > 0 {
		measure.Say("defining %d more", more)
		if _, err := widget.Define(ctx, b.plane, names("idle", more)...); err != nil {
			return i, err
		}
	}
	i.CRDs = max(b.idleCRDs, b.crds)
	before, err := b.requests.Read(ctx)
	if err != nil {
		return i, err
	}
	ctx, p, err := b.start(ctx, configured)
	if err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := b.awaitQuiet(ctx); err != nil {
		return i, err
	}
	begun, err := b.requests.Read(ctx)
	if err != nil {
		return i, err
	}
	i.StartRequests = begun.Since(before)
	cost, err := p.usage()
	if err != nil {
		return i, err
	}
	since := time.Now()
	measure.Say("the manager watches %d clean CRDs for %s", i.CRDs, b.idle)
	if err := wait(ctx, b.idle); err != nil {
		return i, err
	}
	i.Seconds = time.Since(since).Seconds()
	spent, err := p.usage()
	if err != nil {
		return i, err
	}
	ended, err := b.requests.Read(ctx)
	if err != nil {
		return i, err
	}
	i.Requests = ended.Since(begun)
	i.LeaseRenewals = i.Requests["update"]
	i.RequestsPerMinute = float64(i.Requests.Total()) / time.Duration(i.Seconds*float64(time.Second)).Minutes()
	i.CPUSeconds, i.RSSMiB, i.PeakRSSMiB = spent.CPU-cost.CPU, float64(spent.RSS)/mib, float64(spent.PeakRSS)/mib
	return i, nil
}

const (
	// quiet is how long a manager asks for nothing but its lease when it has seen
	// everything.
	quiet = 5 * time.Second
	// quietTimeout is far above what two hundred CRDs take.
	quietTimeout = 10 * time.Minute
)

// awaitQuiet waits for a manager that has just begun to have looked at everything.
func (b *bench) awaitQuiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, quietTimeout, errors.New("the manager does not come to rest"))
	defer cancel()
	for last := int64(-1); ; {
		now, err := b.requests.Read(ctx)
		if err != nil {
			return err
		}
		asked := now.Total() - now["update"] // the lease is renewed all the time
		if asked == last {
			return nil
		}
		last = asked
		if err := wait(ctx, quiet); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
