// Command externalname measures package externalname, the adapter for crossplane-runtime, and `godwit externalname apply`.
//
// A codec is measured in nanoseconds and allocations for each call.
//
// The adapter is compared with a controller for the same kind that is written on crossplane-runtime alone. Both run as processes,
// in turns, over the same life of some objects: creation, observations at which nothing changes, an update, and a deletion. What
// counts is the number of requests that each sends to the API server, which counts them by the user, and to the external system.
// CPU time is reported beside; other processes of the machine change it.
//
// The renaming is `godwit externalname apply` over managed resources that a real provider reconciles. Memory is the peak of the
// process at a tenth of them and at all. After each measurement every managed resource must have its new name and the identity from
// before, and the external system must have the same databases, or there is no result.
//
// # Reading order
//
// codec.go stands alone. cluster.go has the servers and the provider. life.go compares the controllers, fleet.go measures the
// renaming, and main.go has the result. A file uses only files before it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/jobservice"
)

// settings are what the flags say.
type settings struct {
	binary         string
	objects        int
	rounds         int
	fleet          int
	renamesAtATime int
}

// result is what is written to bench/out/externalname.json.
type result struct {
	Codecs []codec `json:"codecs"`
	// Lives compares the controllers.
	Lives comparison `json:"lives"`
	// Fleet are the renamings, by the number of managed resources.
	Fleet []renaming `json:"fleet"`
	// RSSSlope is how much the memory of the command grows with each managed resource.
	RSSSlope    float64 `json:"rssSlopeBytesPerObject"`
	LoadAverage float64 `json:"loadAverage"`
}

func main() {
	jobservice.Main()
	var s settings
	flag.IntVar(&s.objects, "n", 50, "managed resources whose lives are compared")
	flag.IntVar(&s.rounds, "rounds", 3, "turns of the comparison")
	flag.IntVar(&s.fleet, "fleet", 10_000, "managed resources to rename")
	flag.IntVar(&s.renamesAtATime, "batch", 50, "managed resources that may be paused at the same time, as --batch of the command")
	flag.StringVar(&s.binary, "godwit", "../bin/godwit", "the command to measure")
	out := flag.String("out", "out/externalname.json", "the `file` to write the result to")
	flag.Parse()
	os.Exit(measure.Main(context.Background(), func(ctx context.Context) error {
		r, err := run(ctx, s)
		if err != nil {
			return err
		}
		return r.write(*out) // when the servers, which log to stderr, have ended
	}))
}

func run(ctx context.Context, s settings) (r result, err error) {
	if s.fleet < 10*fewest {
		return r, fmt.Errorf("the memory of a renaming of fewer than %d managed resources can't be measured: raise -fleet", 10*fewest)
	}
	r.LoadAverage = proc.LoadAverage()
	if r.Codecs, err = measureCodecs(); err != nil {
		return r, fmt.Errorf("measure the codecs: %w", err)
	}
	c, err := newCluster(ctx, s.binary)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.stop(context.WithoutCancel(ctx))) }()
	if r.Lives, err = c.compare(ctx, s.objects, s.rounds); err != nil {
		return r, fmt.Errorf("compare the controllers: %w", err)
	}
	if r.Fleet, err = c.renameFleets(ctx, []int{s.fleet / 10, s.fleet}, s.renamesAtATime); err != nil {
		return r, fmt.Errorf("measure the renaming: %w", err)
	}
	few, many := r.Fleet[0], r.Fleet[1]
	r.RSSSlope = measure.Ratio(float64(many.PeakRSS-few.PeakRSS), float64(many.Objects-few.Objects))
	return r, nil
}

func (r result) write(path string) error {
	if err := measure.Write(os.Stdout, path, r); err != nil {
		return err
	}
	slowest := 0.0
	for _, c := range r.Codecs {
		slowest = max(slowest, c.Nanoseconds)
	}
	fmt.Printf("externalname: codec_ns=%.0f requests_ratio=%.2f fleet_requests_per_object=%.2f rss_slope_bytes=%.0f\n",
		slowest, r.Lives.RequestsRatio, r.Fleet[len(r.Fleet)-1].RequestsPerObject, r.RSSSlope)
	return nil
}
