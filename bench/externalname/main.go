// Command externalname measures package externalname, the adapter for crossplane-runtime, and `godwit externalname run`.
//
// For a codec, the command measures nanoseconds and allocations per call.
//
// The command compares the adapter with a controller for the same kind that is written on crossplane-runtime alone. Both run as
// processes, in turns, over the same life of some objects: creation, observations at which nothing changes, an update, and a
// deletion. The result is the number of requests to the API server, which counts them by user, and to the external system. The CPU
// time is only for information, because other processes of the machine change it.
//
// The renaming is `godwit externalname run` over managed resources that a real provider reconciles. Memory is the peak of the
// process, over a tenth of the managed resources and over all. If a managed resource does not have its new name and the identity from
// before after a measurement, or if the external system does not have the same databases, there is no result.
//
// # Reading order
//
// codec.go stands alone. cluster.go has the servers and the provider. life.go compares the controllers, fleet.go measures the
// renaming, and main.go has the result. A file uses only files before it.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/jobservice"
)

// result is the content of bench/out/externalname.json.
type result struct {
	Codecs []codec `json:"codecs"`
	// Lives compares the controllers.
	Lives comparison `json:"lives"`
	// Fleet are the renamings, by the number of managed resources.
	Fleet []renaming `json:"fleet"`
	// RSSSlope is the growth of the command's memory per managed resource.
	RSSSlope    float64 `json:"rssSlopeBytesPerObject"`
	LoadAverage float64 `json:"loadAverage"`

	objects, rounds, fleet, batch int
}

func main() {
	jobservice.Main()
	r := &result{}
	flag.IntVar(&r.objects, "n", 50, "managed resources whose lives are compared")
	flag.IntVar(&r.rounds, "rounds", 3, "rounds of the comparison")
	flag.IntVar(&r.fleet, "fleet", 10_000, "managed resources to rename")
	flag.IntVar(&r.batch, "batch", 50, "managed resources that may be paused at the same time, as --batch of the command")
	frame.Main("externalname", r)
}

// Measure implements [frame.Benchmark].
func (r *result) Measure(ctx context.Context, b *frame.Bench) (err error) {
	r.LoadAverage = proc.LoadAverage()
	if r.Codecs, err = measureCodecs(); err != nil {
		return fmt.Errorf("measure the codecs: %w", err)
	}
	c, err := startCluster(ctx, b)
	if err != nil {
		return err
	}
	if r.Lives, err = c.compare(ctx, r.objects, r.rounds); err != nil {
		return fmt.Errorf("compare the controllers: %w", err)
	}
	if r.Fleet, err = c.renameFleets(ctx, []int{r.fleet / 10, r.fleet}, r.batch); err != nil {
		return fmt.Errorf("measure the renaming: %w", err)
	}
	few, many := r.Fleet[0], r.Fleet[1]
	r.RSSSlope = frame.Ratio(float64(many.PeakRSS-few.PeakRSS), float64(many.Objects-few.Objects))
	return nil
}

// Summary implements [frame.Benchmark].
func (r *result) Summary() string {
	slowest := 0.0
	for _, c := range r.Codecs {
		slowest = max(slowest, c.Nanoseconds)
	}
	return fmt.Sprintf("externalname: codec_ns=%.0f requests_ratio=%.2f fleet_requests_per_object=%.2f rss_slope_bytes=%.0f",
		slowest, r.Lives.RequestsRatio, r.Fleet[len(r.Fleet)-1].RequestsPerObject, r.RSSSlope)
}
