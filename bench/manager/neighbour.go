package main

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/walk"
)

// neighbourResult is how much the manager slows a second client.
type neighbourResult struct {
	PerSecond int    `json:"requestsPerSecond"`
	Mix       string `json:"mix"`
	// Each number is the median of the rounds; a ratio is the median of the ratios within a round.
	IdleP50  float64 `json:"idleP50Milliseconds"`
	IdleP99  float64 `json:"idleP99Milliseconds"`
	LoadP50  float64 `json:"loadP50Milliseconds"`
	LoadP99  float64 `json:"loadP99Milliseconds"`
	Ratio    float64 `json:"p99Ratio"`
	RatioP50 float64 `json:"p50Ratio"`
	// Pooled is the ratio of the p99 of all samples together.
	Pooled float64 `json:"p99RatioPooled"`
	// ManagerWritesPerSecond is the rate of the manager's patches meanwhile.
	ManagerWritesPerSecond float64 `json:"managerWritesPerSecond"`
	Rounds                 []turn  `json:"rounds"`
}

// turn is one round, in which the manager works and pauses alternately.
type turn struct {
	Idle     window  `json:"idle"`
	Load     window  `json:"load"`
	Ratio    float64 `json:"p99Ratio"`
	RatioP50 float64 `json:"p50Ratio"`
	// WritesPerSecond are the manager's patches while it was at work.
	WritesPerSecond float64 `json:"managerWritesPerSecond"`
	// LoadAverage is the machine's over the minute before.
	LoadAverage float64 `json:"loadAverage"`
}

// window is the latency of the second client's requests in some seconds.
type window struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50Milliseconds"`
	P99     float64 `json:"p99Milliseconds"`
	Max     float64 `json:"maxMilliseconds"`

	took []time.Duration
}

func windowOf(took []time.Duration) window {
	ms := func(share float64) float64 { return frame.Percentile(took, share).Seconds() * 1000 }
	return window{Samples: len(took), P50: ms(0.5), P99: ms(0.99), Max: ms(1), took: took}
}

func (b *bench) measureNeighbour(ctx context.Context) (neighbourResult, error) {
	r := neighbourResult{PerSecond: perSecond, Mix: "of ten requests: 6 GET, 1 LIST of 20, 3 PATCH, of ConfigMaps of its own"}
	n, err := newNeighbour(ctx, b.cluster)
	if err != nil {
		return r, err
	}
	share := int(2*b.rate*b.window.Seconds()/float64(b.ObjectsPerCRD)) + 1 // enough for two windows
	for i := range b.rounds {
		t := turn{LoadAverage: proc.LoadAverage()}
		if err := b.measureTurn(ctx, n, b.resources[:min(share, b.CRDs)], &t); err != nil {
			return r, err
		}
		frame.Logf("round %d: p99 %.1f ms idle, %.1f ms (%.2f times) while the manager writes %.0f objects/s",
			i+1, t.Idle.P99, t.Load.P99, t.Ratio, t.WritesPerSecond)
		r.Rounds = append(r.Rounds, t)
	}
	r.rate()
	return r, nil
}

// rate sums up the rounds.
func (r *neighbourResult) rate() {
	if len(r.Rounds) == 0 {
		return
	}
	of := func(value func(turn) float64) float64 { return frame.Median(r.Rounds, value) }
	r.IdleP50, r.IdleP99 = of(func(t turn) float64 { return t.Idle.P50 }), of(func(t turn) float64 { return t.Idle.P99 })
	r.LoadP50, r.LoadP99 = of(func(t turn) float64 { return t.Load.P50 }), of(func(t turn) float64 { return t.Load.P99 })
	r.Ratio, r.RatioP50 = of(func(t turn) float64 { return t.Ratio }), of(func(t turn) float64 { return t.RatioP50 })
	r.ManagerWritesPerSecond = of(func(t turn) float64 { return t.WritesPerSecond })
	var idle, load []time.Duration
	for _, t := range r.Rounds {
		idle, load = append(idle, t.Idle.took...), append(load, t.Load.took...)
	}
	r.Pooled = frame.Ratio(windowOf(load).P99, windowOf(idle).P99)
}

// measureTurn measures one round.
func (b *bench) measureTurn(ctx context.Context, n *neighbour, resources []*widget.Resource, t *turn) error {
	return b.withManager(ctx, configured, func(ctx context.Context, p *frame.Process) error {
		if err := flip(ctx, resources); err != nil {
			return err
		}
		if err := b.migrations.awaitWriting(ctx, resources); err != nil {
			return err
		}
		before, err := b.cluster.Requests.Read(ctx)
		if err != nil {
			return err
		}
		loaded, err := b.alternate(ctx, n, p, resources, t)
		if err != nil {
			return err
		}
		after, err := b.cluster.Requests.Read(ctx)
		if err != nil {
			return err
		}
		t.rate()
		t.WritesPerSecond = frame.Ratio(float64(after.Since(before)["patch"]), loaded.Seconds())
		if err := b.migrations.awaitSuccess(ctx, resources); err != nil {
			return err
		}
		return mustBeMigrated(ctx, resources)
	}, "--leader-elect=false") // a manager that is paused can't renew its lease
}

const (
	// half is the time between two switches. It is short enough that other processes of the machine slow both sides alike, and long
	// compared with the cost of a pause.
	half = 5 * time.Second
	// transition is the time after a switch that is not measured. Requests in flight end, and the manager finds its rate again: for
	// the manager, a response that the pause has delayed looks like the response of a busy server.
	transition = time.Second
)

// alternate pauses and continues the manager, and measures in between. It returns how long the manager was at work.
func (b *bench) alternate(ctx context.Context, n *neighbour, p *frame.Process, resources []*widget.Resource, t *turn) (loaded time.Duration, err error) {
	measure := func() ([]time.Duration, error) {
		if err := walk.Wait(ctx, transition); err != nil {
			return nil, err
		}
		return n.measure(ctx, half)
	}
	for range int(b.window / half) {
		if err := p.Pause(ctx); err != nil {
			return 0, err
		}
		idle, err := measure()
		if err := errors.Join(err, p.Continue()); err != nil {
			return 0, err
		}
		began := time.Now()
		load, err := measure()
		if err != nil {
			return 0, err
		}
		loaded += time.Since(began)
		if b.migrations.all(resources, succeeded) {
			return loaded, nil // the manager had nothing to do for a part of it
		}
		t.Idle.took, t.Load.took = append(t.Idle.took, idle...), append(t.Load.took, load...)
	}
	return loaded, nil
}

func (t *turn) rate() {
	t.Idle, t.Load = windowOf(t.Idle.took), windowOf(t.Load.took)
	t.Ratio, t.RatioP50 = frame.Ratio(t.Load.P99, t.Idle.P99), frame.Ratio(t.Load.P50, t.Idle.P50)
}
