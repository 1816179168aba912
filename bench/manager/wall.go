package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/crdrun"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// wall compares the manager with the same work done by one command after another,
// both without a rate: with one, the rate is all there is to measure.
type wall struct {
	// Settle is the settle time of both. Both wait after a flip until the API server has
	// renewed its lease, up to 10.4 s.
	Settle  string    `json:"settle"`
	Manager []managed `json:"manager"`
	// Commands are the turns before, between and after those of the manager.
	Commands []commands `json:"commands"`
	// Ratio compares the manager's wall time with the sum of single runs, of which none waits for the lease. RatioFromFlip
	// compares the time from the first flip on, in which both wait for it. Both compare the medians of all turns.
	Ratio         float64 `json:"ratio"`
	RatioFromFlip float64 `json:"ratioFromFlip"`
}

// managed is a turn of the manager.
type managed struct {
	FlipSeconds    float64 `json:"flipSeconds"` // until every CRD was changed; part of the wall time
	SecondsToWrite float64 `json:"secondsToFirstCheckpoint"`
	WallSeconds    float64 `json:"wallSeconds"` // from the first flip to the last Succeeded
	// ObjectsPerSecond are those of the time from the first checkpoint on.
	ObjectsPerSecond float64       `json:"objectsPerSecond"`
	Requests         account.Count `json:"requests"`
	CPUSeconds       float64       `json:"cpuSeconds"`
	PeakRSSMiB       float64       `json:"peakRSSMiB"`
}

// commands is a turn of `godwit crd run`, once for each CRD.
type commands struct {
	FlipSeconds float64 `json:"flipSeconds"` // until every CRD was changed; part of the wall time
	WallSeconds float64 `json:"wallSeconds"` // of the flips and all runs, without the checks between them
	// First waits for the lease, as the manager does; when it ends, no other run has to.
	First  single   `json:"first"`
	Others []single `json:"others"`
}

// single is one run of `godwit crd run`.
type single struct {
	Seconds    float64 `json:"seconds"`
	Requests   int64   `json:"requests"`
	PeakRSSMiB float64 `json:"peakRSSMiB"`
}

// seconds is the time of all runs, where that of the first is given.
func (c commands) seconds(first float64) float64 {
	total := first
	for _, s := range c.Others {
		total += s.Seconds
	}
	return total
}

// sum is the time of all runs, as if the first had not waited: it counts as much as the median of the others.
func (c commands) sum() float64 {
	return c.seconds(measure.Median(c.Others, func(s single) float64 { return s.Seconds }))
}

func (b *bench) measureWall(ctx context.Context) (wall, error) {
	w := wall{Settle: "0s"}
	for turn := range 2*b.turns + 1 {
		if turn%2 == 0 {
			c, err := b.runCommands(ctx)
			if err != nil {
				return w, err
			}
			w.Commands = append(w.Commands, c)
			continue
		}
		m, err := b.runManager(ctx)
		if err != nil {
			return w, err
		}
		w.Manager = append(w.Manager, m)
	}
	took := measure.Median(w.Manager, func(m managed) float64 { return m.WallSeconds })
	w.Ratio = measure.Ratio(took, measure.Median(w.Commands, commands.sum))
	w.RatioFromFlip = measure.Ratio(took, measure.Median(w.Commands, func(c commands) float64 { return c.WallSeconds }))
	return w, nil
}

// runCommands migrates one CRD after another.
func (b *bench) runCommands(ctx context.Context) (c commands, err error) {
	begun := time.Now()
	if err := flip(ctx, b.resources); err != nil {
		return c, err
	}
	c.FlipSeconds = time.Since(begun).Seconds()
	// The CRD that was flipped last is the first: its run waits for the lease for all others.
	for i, r := range slices.Backward(b.resources) {
		s, err := runSingle(ctx, b.binary, r.As(b.user))
		if err != nil {
			return c, err
		}
		if i == len(b.resources)-1 {
			c.First = s
			continue
		}
		c.Others = append(c.Others, s)
	}
	c.WallSeconds = c.FlipSeconds + c.seconds(c.First.Seconds)
	measure.Say("godwit crd run: %d CRDs of %d objects in %.1f s; alone, their runs take %.1f s", b.crds, b.objects, c.WallSeconds, c.sum())
	return c, nil
}

func runSingle(ctx context.Context, binary string, r *widget.Resource) (single, error) {
	c, err := crdrun.New(binary, r)
	if err != nil {
		return single{}, err
	}
	defer c.Close()
	report, err := c.Run(ctx)
	if err != nil {
		return single{}, err
	}
	return single{Seconds: report.Took.Seconds(), Requests: report.Requests, PeakRSSMiB: float64(report.PeakRSS) / mib}, nil
}

// runManager lets a manager that has nothing to do yet see every CRD change.
func (b *bench) runManager(ctx context.Context) (m managed, err error) {
	ctx, p, err := b.start(ctx, unpaced)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := b.awaitQuiet(ctx); err != nil {
		return m, err
	}
	before, err := b.requests.Read(ctx)
	if err != nil {
		return m, err
	}
	cost, err := p.usage()
	if err != nil {
		return m, err
	}
	measure.Say("the manager watches %d CRDs; flipping all", b.crds)
	begun := time.Now()
	if err := flip(ctx, b.resources); err != nil {
		return m, err
	}
	m.FlipSeconds = time.Since(begun).Seconds()
	if err := b.awaitWriting(ctx, b.resources); err != nil {
		return m, err
	}
	m.SecondsToWrite = time.Since(begun).Seconds()
	if err := b.awaitSuccess(ctx, b.resources); err != nil {
		return m, err
	}
	m.WallSeconds = time.Since(begun).Seconds()
	m.ObjectsPerSecond = measure.Ratio(float64(b.crds*b.objects), m.WallSeconds-m.SecondsToWrite)
	measure.Say("manager: %d CRDs of %d objects in %.1f s", b.crds, b.objects, m.WallSeconds)
	after, err := b.requests.Read(ctx)
	if err != nil {
		return m, err
	}
	spent, err := p.usage()
	if err != nil {
		return m, err
	}
	m.Requests, m.CPUSeconds, m.PeakRSSMiB = after.Since(before), spent.CPU-cost.CPU, float64(spent.PeakRSS)/mib
	return m, mustBeMigrated(ctx, b.resources)
}
