package main

import (
	"context"
	"slices"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
)

// wall compares the manager with one command after another for the same work. Both have no limit of the rate, because the
// measurement would only show that limit.
type wall struct {
	// Settle is the settle time of both. Both wait after a flip until the API server has renewed its lease, up to 10.4 s.
	Settle  string    `json:"settle"`
	Manager []managed `json:"manager"`
	// Commands are the turns before, between and after the turns of the manager.
	Commands []commands `json:"commands"`
	// Ratio compares the manager's wall time with the sum of single runs that do not wait for the lease. RatioFromFlip compares
	// the time from the first flip on, in which both wait for the lease. Both compare the medians of all turns.
	Ratio         float64 `json:"ratio"`
	RatioFromFlip float64 `json:"ratioFromFlip"`
}

// managed is a turn of the manager.
type managed struct {
	FlipSeconds    float64 `json:"flipSeconds"` // until every CRD was changed; part of the wall time
	SecondsToWrite float64 `json:"secondsToFirstCheckpoint"`
	WallSeconds    float64 `json:"wallSeconds"` // from the first flip to the last Succeeded
	// ObjectsPerSecond is the speed from the first checkpoint on.
	ObjectsPerSecond float64       `json:"objectsPerSecond"`
	Requests         account.Count `json:"requests"`
	CPUSeconds       float64       `json:"cpuSeconds"`
	PeakRSSMiB       float64       `json:"peakRSSMiB"`
}

// commands is a turn of `godwit crd run`, once for each CRD.
type commands struct {
	FlipSeconds float64 `json:"flipSeconds"` // until every CRD was changed; part of the wall time
	WallSeconds float64 `json:"wallSeconds"` // of the flips and all runs, without the checks between them
	// First is the run that waits for the lease, as the manager does. The other runs begin later and do not wait.
	First  single   `json:"first"`
	Others []single `json:"others"`
}

// single is one run of `godwit crd run`.
type single struct {
	Seconds    float64 `json:"seconds"`
	Requests   int64   `json:"requests"`
	PeakRSSMiB float64 `json:"peakRSSMiB"`
}

// seconds returns the time of all runs, with another time for the first run.
func (c commands) seconds(first float64) float64 {
	total := first
	for _, s := range c.Others {
		total += s.Seconds
	}
	return total
}

// sum returns the time of all runs without the wait of the first run, which counts with the median of the other runs.
func (c commands) sum() float64 {
	return c.seconds(frame.Median(c.Others, func(s single) float64 { return s.Seconds }))
}

func (b *bench) measureWall(ctx context.Context) (wall, error) {
	w := wall{Settle: "0s"}
	for turn := range 2*b.turns + 1 {
		measure := b.runCommands
		if turn%2 == 1 {
			measure = b.runManager
		}
		if err := measure(ctx, &w); err != nil {
			return w, err
		}
	}
	took := frame.Median(w.Manager, func(m managed) float64 { return m.WallSeconds })
	w.Ratio = frame.Ratio(took, frame.Median(w.Commands, commands.sum))
	w.RatioFromFlip = frame.Ratio(took, frame.Median(w.Commands, func(c commands) float64 { return c.WallSeconds }))
	return w, nil
}

// runCommands migrates one CRD after another.
func (b *bench) runCommands(ctx context.Context, w *wall) error {
	began := time.Now()
	if err := flip(ctx, b.resources); err != nil {
		return err
	}
	c := commands{FlipSeconds: time.Since(began).Seconds()}
	// The CRD that was flipped last is the first: its run waits for the lease for all others.
	for i, r := range slices.Backward(b.resources) {
		report, err := r.Run(ctx)
		if err != nil {
			return err
		}
		s := single{Seconds: report.Cost.Took.Seconds(), Requests: report.Requests, PeakRSSMiB: frame.MiB(report.Cost.PeakRSS)}
		if i == len(b.resources)-1 {
			c.First = s
			continue
		}
		c.Others = append(c.Others, s)
	}
	c.WallSeconds = c.FlipSeconds + c.seconds(c.First.Seconds)
	frame.Logf("godwit crd run: %d CRDs of %d objects in %.1f s; alone, their runs take %.1f s", b.CRDs, b.ObjectsPerCRD, c.WallSeconds, c.sum())
	w.Commands = append(w.Commands, c)
	return nil
}

// runManager changes every CRD while an idle manager runs.
func (b *bench) runManager(ctx context.Context, w *wall) error {
	return b.withManager(ctx, unpaced, func(ctx context.Context, p *frame.Process) error {
		if err := b.awaitQuiet(ctx); err != nil {
			return err
		}
		begin, err := b.read(ctx, p)
		if err != nil {
			return err
		}
		frame.Logf("the manager watches %d CRDs; flipping all", b.CRDs)
		var m managed
		since := func() float64 { return time.Since(begin.time).Seconds() }
		if err := flip(ctx, b.resources); err != nil {
			return err
		}
		m.FlipSeconds = since()
		if err := b.migrations.awaitWriting(ctx, b.resources); err != nil {
			return err
		}
		m.SecondsToWrite = since()
		if err := b.migrations.awaitSuccess(ctx, b.resources); err != nil {
			return err
		}
		m.WallSeconds = since()
		m.ObjectsPerSecond = frame.Ratio(float64(b.CRDs*b.ObjectsPerCRD), m.WallSeconds-m.SecondsToWrite)
		frame.Logf("manager: %d CRDs of %d objects in %.1f s", b.CRDs, b.ObjectsPerCRD, m.WallSeconds)
		end, err := b.read(ctx, p)
		if err != nil {
			return err
		}
		m.Requests, m.CPUSeconds, m.PeakRSSMiB = end.requests.Since(begin.requests), end.usage.CPU-begin.usage.CPU, frame.MiB(end.usage.PeakRSS)
		w.Manager = append(w.Manager, m)
		return mustBeMigrated(ctx, b.resources)
	})
}
