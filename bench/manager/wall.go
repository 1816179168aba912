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
	Settle  string  `json:"settle"`
	Manager managed `json:"manager"`
	// Singles are measured, on CRDs of the same size, one after another,
	// before and after the manager's turn, when the lease is renewed.
	Singles []single `json:"singles"`
	// FromFlip begin right after the flip: they wait for the lease, as the manager does.
	FromFlip []single `json:"singlesFromFlip"`
	// SumOfSingles is extrapolated: the median of Singles times the number of CRDs.
	SumOfSingles float64 `json:"sumOfSinglesSecondsExtrapolated"`
	// SumFromFlip is what a user waits who changes all CRDs and then starts one command after
	// another: the first of them waits for the lease.
	SumFromFlip   float64 `json:"sumFromFlipSecondsExtrapolated"`
	Ratio         float64 `json:"ratio"`            // of the manager's wall time to SumOfSingles
	RatioFromFlip float64 `json:"ratioFromFlip"`    // the same to SumFromFlip
	RatioWriting  float64 `json:"ratioFromWriting"` // of the time from the manager's first checkpoint to SumOfSingles
}

// managed is the manager's turn.
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

// single is one run of `godwit crd run`.
type single struct {
	Seconds    float64 `json:"seconds"`
	Requests   int64   `json:"requests"`
	PeakRSSMiB float64 `json:"peakRSSMiB"`
}

func (b *bench) measureWall(ctx context.Context) (wall, error) {
	w := wall{Settle: "0s"}
	var err error
	if err := b.runSingles(ctx, &w); err != nil {
		return w, err
	}
	if w.Manager, err = b.runManager(ctx); err != nil {
		return w, err
	}
	if err := b.runSingles(ctx, &w); err != nil {
		return w, err
	}
	seconds := func(s single) float64 { return s.Seconds }
	w.SumOfSingles = float64(b.crds) * measure.Median(w.Singles, seconds)
	w.SumFromFlip = measure.Median(w.FromFlip, seconds) + float64(b.crds-1)*measure.Median(w.Singles, seconds)
	w.Ratio = measure.Ratio(w.Manager.WallSeconds, w.SumOfSingles)
	w.RatioFromFlip = measure.Ratio(w.Manager.WallSeconds, w.SumFromFlip)
	w.RatioWriting = measure.Ratio(w.Manager.WallSeconds-w.Manager.SecondsToWrite, w.SumOfSingles)
	return w, nil
}

// runSingles migrates some of the CRDs one after another. The one that was flipped last is the
// first: when its run has waited for the lease, no other run has to.
func (b *bench) runSingles(ctx context.Context, w *wall) error {
	sample := b.resources[:min(b.singles, len(b.resources))]
	for _, r := range sample {
		if err := r.FlipAndProbe(ctx); err != nil {
			return err
		}
	}
	for i, r := range slices.Backward(sample) {
		s, err := runSingle(ctx, b.binary, r)
		if err != nil {
			return err
		}
		if i == len(sample)-1 {
			measure.Say("godwit crd run right after the flip: %d objects in %.2f s", b.objects, s.Seconds)
			w.FromFlip = append(w.FromFlip, s)
			continue
		}
		measure.Say("godwit crd run: %d objects in %.2f s", b.objects, s.Seconds)
		w.Singles = append(w.Singles, s)
	}
	return nil
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
