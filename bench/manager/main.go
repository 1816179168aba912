package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// result is the content of bench/out/manager.json.
type result struct {
	bench
	Wall      wall            `json:"wall"`
	Neighbour neighbourResult `json:"neighbour"`
	Idle      idle            `json:"idle"`
}

func main() {
	r := &result{}
	flag.IntVar(&r.CRDs, "crds", 50, "CRDs to migrate")
	flag.IntVar(&r.ObjectsPerCRD, "objects", 1000, "objects of each")
	flag.IntVar(&r.turns, "turns", 2, "turns of the manager; the commands that it is compared with take one turn more")
	flag.IntVar(&r.rounds, "rounds", 5, "rounds of the measurement of the second client; 0 for none")
	flag.DurationVar(&r.window, "window", 30*time.Second, "how long the second client is measured in each half of a round")
	flag.DurationVar(&r.idle, "idle", 10*time.Minute, "how long the manager is measured with nothing to do; 0 for not at all")
	flag.IntVar(&r.idleCRDs, "idle-crds", 200, "CRDs that it watches then")
	flag.StringVar(&r.Limits, "limits", "{}", "the limits of the manager's configuration beside a second client and when idle, as YAML in one line (default: its own)")
	flag.Float64Var(&r.rate, "rate", 20, "objects per second that a manager with these limits is expected to migrate: how many CRDs it is given beside a second client")
	frame.Main("manager", r)
}

// Measure implements [frame.Benchmark].
func (r *result) Measure(ctx context.Context, f *frame.Bench) (err error) {
	if r.CRDs < 2 || r.turns < 1 {
		return errors.New("nothing can be compared: raise -crds to 2 or more, and -turns to 1 or more")
	}
	r.frame = f
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if r.Wall, err = r.measureWall(ctx); err != nil {
		return fmt.Errorf("measure the wall time: %w", err)
	}
	if r.Neighbour, err = r.measureNeighbour(ctx); err != nil {
		return fmt.Errorf("measure the second client: %w", err)
	}
	if r.Idle, err = r.measureIdle(ctx); err != nil {
		return fmt.Errorf("measure an idle manager: %w", err)
	}
	return nil
}

// Summary implements [frame.Benchmark].
func (r *result) Summary() string {
	manager := r.Wall.Manager[len(r.Wall.Manager)-1]
	return fmt.Sprintf("manager: wall_ratio=%.2f wall_ratio_from_flip=%.2f p99_ratio=%.2f rss_mib=%.0f requests=%d idle_requests_per_minute=%.1f idle_cpu_seconds=%.2f",
		r.Wall.Ratio, r.Wall.RatioFromFlip, r.Neighbour.Ratio, manager.PeakRSSMiB, manager.Requests.Total(), r.Idle.RequestsPerMinute, r.Idle.CPUSeconds)
}

func (b *bench) prepare(ctx context.Context) (err error) {
	if b.cluster, err = b.frame.StartCluster(ctx, controlplane.Options{}); err != nil {
		return err
	}
	if err := b.installManager(ctx); err != nil {
		return err
	}
	if b.migrations, err = watchMigrations(ctx, b.cluster.Config()); err != nil {
		return err
	}
	if b.resources, err = widget.Define(ctx, b.cluster, frame.Names("wall", b.CRDs)...); err != nil {
		return err
	}
	frame.Logf("creating %d objects of each of %d CRDs", b.ObjectsPerCRD, b.CRDs)
	for _, r := range b.resources {
		if err := r.Fill(ctx, b.ObjectsPerCRD); err != nil {
			return err
		}
	}
	return nil
}
