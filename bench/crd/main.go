// Command crd measures `godwit crd run` against what the API server can take.
//
// The ceiling is a loop of empty merge patches over names that were listed
// beforehand, at its best number in flight. Both run against the same control
// plane, in turns and several times, since a machine that is shared is never
// equally fast twice: what counts is the ratio within one run of this command.
//
// Bytes are counted on the wire, by a forwarder that a run of its own goes
// through; memory is the peak of the process, at n and at ten times n.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/godwit-dev/godwit/bench/internal/crdrun"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// result is what is written to bench/out/crd.json.
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
	BytesPerObject    float64         `json:"bytesPerObject"`
	PeakRSS           map[int]int64   `json:"peakRSSBytes"`
	RSSSlope          float64         `json:"rssSlopeBytesPerObject"`
	Runs              []round         `json:"runs"`
}

type ceiling struct {
	InFlight         int     `json:"inFlight"`
	ObjectsPerSecond float64 `json:"objectsPerSecond"`
}

// round is one turn of everything, in objects per second.
type round struct {
	Godwit float64         `json:"godwit"`
	Raw    map[int]float64 `json:"rawByInFlight"`
}

func main() {
	n := flag.Int("n", 3000, "objects")
	rounds := flag.Int("rounds", 3, "turns of the measurement of speed")
	binary := flag.String("godwit", "../bin/godwit", "the command to measure")
	out := flag.String("out", "out/crd.json", "where the result goes")
	flag.Parse()
	os.Exit(measure.Main(context.Background(), func(ctx context.Context) error { return run(ctx, *binary, *out, *n, *rounds) }))
}

func run(ctx context.Context, binary, out string, n, rounds int) (err error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	w, err := widget.New(ctx, plane, "speed", n)
	if err != nil {
		return err
	}
	c, err := crdrun.New(binary, w)
	if err != nil {
		return err
	}
	defer c.Close()

	r := result{Objects: n, Rounds: rounds, PeakRSS: map[int]int64{}}
	if err := r.measureSpeed(ctx, w, c); err != nil {
		return err
	}
	if err := r.measureRequests(ctx, w, c); err != nil {
		return err
	}
	if err := r.measureBytes(ctx, w, c); err != nil {
		return err
	}
	if err := r.measureMemory(ctx, plane, binary); err != nil {
		return err
	}
	return r.write(out)
}

// measureSpeed lets godwit and the raw loop take turns. Each turn begins with
// every object at the other version, after one request for each and a pause.
func (r *result) measureSpeed(ctx context.Context, w *widget.Resource, c *crdrun.Command) error {
	if err := w.WarmUp(ctx); err != nil {
		return err
	}
	for i := range r.Rounds {
		turn := round{Raw: map[int]float64{}}
		for _, width := range measure.InFlight {
			if err := w.PrepareTurn(ctx); err != nil {
				return err
			}
			took, err := w.PatchAll(ctx, width)
			if err != nil {
				return err
			}
			turn.Raw[width] = w.PerSecond(took)
			measure.Say("round %d: raw loop, %2d in flight: %.0f objects/s", i+1, width, turn.Raw[width])
		}
		if err := w.PrepareTurn(ctx); err != nil {
			return err
		}
		report, err := c.Run(ctx)
		if err != nil {
			return err
		}
		turn.Godwit = w.PerSecond(report.Took)
		measure.Say("round %d: godwit crd run: %.0f objects/s", i+1, turn.Godwit)
		r.Runs = append(r.Runs, turn)
	}
	r.rate()
	return nil
}

// rate compares with the raw loop round by round, and picks the ceiling's width by its median.
func (r *result) rate() {
	r.RatioByInFlight = map[int]float64{}
	for _, width := range measure.InFlight {
		r.RatioByInFlight[width] = measure.Median(r.Runs, func(t round) float64 { return t.Godwit / t.Raw[width] })
		measure.Say("godwit crd run: %.2f of the raw loop with %d in flight", r.RatioByInFlight[width], width)
	}
	r.Ceiling.InFlight, r.Ceiling.ObjectsPerSecond = measure.Best(r.Runs, func(t round, width int) float64 { return t.Raw[width] })
	for _, t := range r.Runs {
		r.RatioPerRound = append(r.RatioPerRound, t.Godwit/t.Raw[r.Ceiling.InFlight])
	}
	r.ObjectsPerSecond = measure.Median(r.Runs, func(t round) float64 { return t.Godwit })
	r.RatioToCeiling = r.RatioByInFlight[r.Ceiling.InFlight]
}

// measureRequests counts what a migration sends, and what a run sends that finds
// everything done.
func (r *result) measureRequests(ctx context.Context, w *widget.Resource, c *crdrun.Command) error {
	if err := w.FlipAndAge(ctx); err != nil {
		return err
	}
	first, err := c.Run(ctx, "--no-trim")
	if err != nil {
		return err
	}
	resumed, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if first.Objects.Migrated != int64(r.Objects) || resumed.Objects.Skipped != int64(r.Objects) || !resumed.Trimmed {
		return fmt.Errorf("the run and its resumption reported %+v and %+v, want all migrated, then all skipped and trimmed", first, resumed)
	}
	r.RequestsPerObject = float64(first.Requests) / float64(r.Objects)
	r.RequestsResumed = float64(resumed.Requests) / float64(r.Objects)
	measure.Say("requests per object: %.4f migrated, %.4f resumed", r.RequestsPerObject, r.RequestsResumed)
	return nil
}

func (r *result) measureBytes(ctx context.Context, w *widget.Resource, c *crdrun.Command) error {
	if err := w.FlipAndAge(ctx); err != nil {
		return err
	}
	wire, err := newForwarder(ctx, w.Config().Host)
	if err != nil {
		return err
	}
	defer wire.close()
	if _, err := c.Run(ctx, "--server=https://"+wire.address()); err != nil {
		return err
	}
	r.BytesPerObject = float64(wire.bytes.Load()) / float64(r.Objects)
	measure.Say("bytes on the wire per object, both ways: %.0f", r.BytesPerObject)
	return nil
}

// measureMemory migrates n and ten times n objects of resources made for it.
func (r *result) measureMemory(ctx context.Context, plane *controlplane.ControlPlane, binary string) error {
	for _, n := range []int{r.Objects, 10 * r.Objects} {
		peak, err := peakRSS(ctx, plane, binary, n)
		if err != nil {
			return err
		}
		r.PeakRSS[n] = peak
		measure.Say("peak RSS at %d objects: %.1f MiB", n, float64(peak)/(1<<20))
	}
	r.RSSSlope = float64(r.PeakRSS[10*r.Objects]-r.PeakRSS[r.Objects]) / float64(9*r.Objects)
	return nil
}

func peakRSS(ctx context.Context, plane *controlplane.ControlPlane, binary string, n int) (int64, error) {
	w, err := widget.New(ctx, plane, fmt.Sprintf("memory%d", n), n)
	if err != nil {
		return 0, err
	}
	c, err := crdrun.New(binary, w)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := w.FlipAndAge(ctx); err != nil {
		return 0, err
	}
	report, err := c.Run(ctx)
	return report.PeakRSS, err
}

func (r *result) write(path string) error {
	if err := measure.Write(os.Stdout, path, r); err != nil {
		return err
	}
	fmt.Printf("crd: ratio_to_ceiling=%.2f requests_per_object=%.4f rss_slope_bytes=%.0f\n",
		r.RatioToCeiling, r.RequestsPerObject, r.RSSSlope)
	return nil
}
