// Command crd compares the speed of `godwit crd run` with the limit of the API server.
//
// The ceiling is a loop of empty merge patches over names that were listed beforehand, at its best number in flight. Both run
// against the same control plane, as the same user, in turns and several times, because the speed of a shared machine changes:
// only the ratio within one run of this command counts.
//
// A forwarder counts the bytes on the wire, in a separate run. Memory is the peak of the process, at n and at ten times n objects.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// result is the content of bench/out/crd.json.
type result struct {
	Objects           int             `json:"objects"`
	Rounds            int             `json:"rounds"`
	ObjectsPerSecond  float64         `json:"objectsPerSecond"`
	Ceiling           ceiling         `json:"ceiling"`
	RatioToCeiling    float64         `json:"ratioToCeiling"`
	RatioPerRound     []float64       `json:"ratioPerRound"`
	RatioByInFlight   map[int]float64 `json:"ratioByInFlight"` // to the raw loop with so many in flight
	RequestsPerObject float64         `json:"requestsPerObject"`
	RequestsResumed   float64         `json:"requestsPerObjectResumed"`
	RequestsTried     float64         `json:"requestsPerObjectTried"` // by dry runs, where the schemas do not prove that each value is kept
	TimeTried         float64         `json:"timeTriedToProven"`      // the time of such a run, to that of one that the schemas prove
	BytesPerObject    float64         `json:"bytesPerObject"`
	PeakRSS           map[int]int64   `json:"peakRSSBytes"`
	RSSSlope          float64         `json:"rssSlopeBytesPerObject"`
	Runs              []round         `json:"runs"`
}

type ceiling struct {
	InFlight         int     `json:"inFlight"`
	ObjectsPerSecond float64 `json:"objectsPerSecond"`
}

// round has the speed of one turn of each, in objects per second.
type round struct {
	Godwit float64         `json:"godwit"`
	Raw    map[int]float64 `json:"rawByInFlight"`
}

func main() {
	r := &result{PeakRSS: map[int]int64{}}
	flag.IntVar(&r.Objects, "n", 3000, "objects")
	flag.IntVar(&r.Rounds, "rounds", 3, "rounds of the measurement of speed")
	frame.Main("crd", r)
}

// Measure implements [frame.Benchmark].
func (r *result) Measure(ctx context.Context, b *frame.Bench) error {
	c, err := b.StartCluster(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	w, err := widget.New(ctx, c, "speed", r.Objects)
	if err != nil {
		return err
	}
	if err := r.measureSpeed(ctx, w); err != nil {
		return err
	}
	if err := r.measureRequests(ctx, w); err != nil {
		return err
	}
	if err := r.measureRoundTrips(ctx, w); err != nil {
		return err
	}
	if err := r.measureBytes(ctx, w, c.User.Host); err != nil {
		return err
	}
	return r.measureMemory(ctx, c)
}

// measureSpeed lets godwit and the raw loop take turns. Each turn begins with every object at the other version, after one
// request for each and a pause.
func (r *result) measureSpeed(ctx context.Context, w *widget.Resource) error {
	if err := w.WarmUp(ctx); err != nil {
		return err
	}
	for i := range r.Rounds {
		one := round{Raw: map[int]float64{}}
		turns := []frame.Turn{func(ctx context.Context) (string, error) {
			report, err := w.Run(ctx)
			one.Godwit = w.PerSecond(report.Cost.Took)
			return fmt.Sprintf("godwit crd run: %.0f objects/s", one.Godwit), err
		}}
		for _, width := range frame.InFlight {
			turns = append(turns, func(ctx context.Context) (string, error) {
				took, err := w.PatchAll(ctx, width)
				one.Raw[width] = w.PerSecond(took)
				return fmt.Sprintf("raw loop, %2d in flight: %.0f objects/s", width, one.Raw[width]), err
			})
		}
		if err := frame.TakeTurns(ctx, i, w.PrepareTurn, turns); err != nil {
			return err
		}
		r.Runs = append(r.Runs, one)
	}
	r.rate()
	return nil
}

// rate compares with the raw loop round by round, and picks the ceiling's width by its median.
func (r *result) rate() {
	godwit := func(t round) float64 { return t.Godwit }
	r.RatioByInFlight = map[int]float64{}
	for _, width := range frame.InFlight {
		r.RatioByInFlight[width] = frame.MedianRatio(r.Runs, godwit, func(t round) float64 { return t.Raw[width] })
		frame.Logf("godwit crd run: %.2f of the raw loop with %d in flight", r.RatioByInFlight[width], width)
	}
	r.Ceiling.InFlight, r.Ceiling.ObjectsPerSecond = frame.Ceiling(r.Runs, func(t round, width int) float64 { return t.Raw[width] })
	for _, t := range r.Runs {
		r.RatioPerRound = append(r.RatioPerRound, frame.Ratio(t.Godwit, t.Raw[r.Ceiling.InFlight]))
	}
	r.ObjectsPerSecond = frame.Median(r.Runs, godwit)
	r.RatioToCeiling = r.RatioByInFlight[r.Ceiling.InFlight]
}

// measureRequests counts the requests of a migration, and of a run that finds everything migrated.
func (r *result) measureRequests(ctx context.Context, w *widget.Resource) error {
	if err := w.FlipAndAge(ctx); err != nil {
		return err
	}
	first, err := w.Run(ctx, "--no-trim")
	if err != nil {
		return err
	}
	resumed, err := w.Run(ctx)
	if err != nil {
		return err
	}
	if first.Objects.Migrated != int64(r.Objects) || resumed.Objects.Skipped != int64(r.Objects) || !resumed.Trimmed {
		return fmt.Errorf("the run and its resumption reported %+v and %+v, want all migrated, then all skipped and trimmed", first, resumed)
	}
	r.RequestsPerObject = float64(first.Requests) / float64(r.Objects)
	r.RequestsResumed = float64(resumed.Requests) / float64(r.Objects)
	frame.Logf("requests per object: %.4f migrated, %.4f resumed", r.RequestsPerObject, r.RequestsResumed)
	return nil
}

// measureRoundTrips compares runs that the schemas prove with runs that try each object, in turns.
func (r *result) measureRoundTrips(ctx context.Context, w *widget.Resource) error {
	type pair struct{ proven, tried float64 } // seconds
	var pairs []pair
	for i := range r.Rounds {
		var p pair
		for turn := range 2 {
			tried := (i+turn)%2 == 1
			if err := w.Restrict(ctx, tried); err != nil {
				return err
			}
			if err := w.PrepareTurn(ctx); err != nil {
				return err
			}
			report, err := w.Run(ctx)
			if err != nil {
				return err
			}
			if tried {
				p.tried, r.RequestsTried = report.Cost.Took.Seconds(), float64(report.Requests)/float64(r.Objects)
			} else {
				p.proven = report.Cost.Took.Seconds()
			}
		}
		frame.Logf("round %d: %.1f s proven by the schemas, %.1f s with round trips", i+1, p.proven, p.tried)
		pairs = append(pairs, p)
	}
	r.TimeTried = frame.MedianRatio(pairs, func(p pair) float64 { return p.tried }, func(p pair) float64 { return p.proven })
	frame.Logf("with round trips: %.4f requests per object, %.2f times as long", r.RequestsTried, r.TimeTried)
	return w.Restrict(ctx, false)
}

func (r *result) measureBytes(ctx context.Context, w *widget.Resource, server string) error {
	if err := w.FlipAndAge(ctx); err != nil {
		return err
	}
	wire, err := newForwarder(ctx, server)
	if err != nil {
		return err
	}
	defer wire.close()
	if _, err := w.Run(ctx, "--server=https://"+wire.address()); err != nil {
		return err
	}
	r.BytesPerObject = float64(wire.bytes.Load()) / float64(r.Objects)
	frame.Logf("bytes on the wire per object, both ways: %.0f", r.BytesPerObject)
	return nil
}

// measureMemory migrates n and ten times n objects of resources made for it.
func (r *result) measureMemory(ctx context.Context, c *frame.Cluster) error {
	for _, n := range []int{r.Objects, 10 * r.Objects} {
		w, err := widget.New(ctx, c, fmt.Sprintf("memory%d", n), n)
		if err != nil {
			return err
		}
		if err := w.FlipAndAge(ctx); err != nil {
			return err
		}
		report, err := w.Run(ctx)
		if err != nil {
			return err
		}
		r.PeakRSS[n] = report.Cost.PeakRSS
		frame.Logf("peak RSS at %d objects: %.1f MiB", n, frame.MiB(r.PeakRSS[n]))
	}
	r.RSSSlope = float64(r.PeakRSS[10*r.Objects]-r.PeakRSS[r.Objects]) / float64(9*r.Objects)
	return nil
}

// Summary implements [frame.Benchmark].
func (r *result) Summary() string {
	return fmt.Sprintf("crd: ratio_to_ceiling=%.2f requests_per_object=%.4f rss_slope_bytes=%.0f", r.RatioToCeiling, r.RequestsPerObject, r.RSSSlope)
}
