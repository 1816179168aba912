package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// result is what is written to bench/out/manager.json.
type result struct {
	CRDs          int             `json:"crds"`
	ObjectsPerCRD int             `json:"objectsPerCRD"`
	Limits        string          `json:"limits"` // of the manager, but for the wall time; {}: its defaults
	Wall          wall            `json:"wall"`
	Neighbour     neighbourResult `json:"neighbour"`
	Idle          idle            `json:"idle"`
}

func main() {
	var s settings
	flag.IntVar(&s.crds, "crds", 50, "CRDs to migrate")
	flag.IntVar(&s.objects, "objects", 1000, "objects of each")
	flag.IntVar(&s.turns, "turns", 2, "turns of the manager; the commands that it is compared with take one turn more")
	flag.IntVar(&s.rounds, "rounds", 5, "turns of the measurement of the second client; 0 for none")
	flag.DurationVar(&s.window, "window", 30*time.Second, "how long the second client is measured in each half of a turn")
	flag.DurationVar(&s.idle, "idle", 10*time.Minute, "how long the manager is measured with nothing to do; 0 for not at all")
	flag.IntVar(&s.idleCRDs, "idle-crds", 200, "CRDs that it watches then")
	flag.StringVar(&s.limits, "limits", "{}", "the limits of the manager's configuration beside a second client and when idle, as YAML in one line (default: its own)")
	flag.Float64Var(&s.rate, "rate", 20, "objects per second that a manager with these limits migrates, as far as one knows: how many CRDs it is given beside a second client")
	flag.StringVar(&s.binary, "godwit", "../bin/godwit", "the command to measure")
	out := flag.String("out", "out/manager.json", "where the result goes")
	flag.Parse()
	os.Exit(measure.Main(context.Background(), func(ctx context.Context) error {
		r, err := run(ctx, s)
		if err != nil {
			return err
		}
		return r.write(*out) // once the servers are gone, and nothing says more
	}))
}

func run(ctx context.Context, s settings) (r result, err error) {
	if s.crds < 2 || s.turns < 1 {
		return r, errors.New("nothing can be compared: raise -crds to 2 or more, and -turns to 1 or more")
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	dir, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, err := newBench(ctx, plane, s, dir)
	if err != nil {
		return r, err
	}

	r = result{CRDs: s.crds, ObjectsPerCRD: s.objects, Limits: s.limits}
	if r.Wall, err = b.measureWall(ctx); err != nil {
		return r, fmt.Errorf("measure the wall time: %w", err)
	}
	if r.Neighbour, err = b.measureNeighbour(ctx); err != nil {
		return r, fmt.Errorf("measure the second client: %w", err)
	}
	if r.Idle, err = b.measureIdle(ctx); err != nil {
		return r, fmt.Errorf("measure an idle manager: %w", err)
	}
	return r, nil
}

func (r result) write(path string) error {
	if err := measure.Write(os.Stdout, path, r); err != nil {
		return err
	}
	manager := r.Wall.Manager[len(r.Wall.Manager)-1]
	fmt.Printf("manager: wall_ratio=%.2f wall_ratio_from_flip=%.2f p99_ratio=%.2f rss_mib=%.0f requests=%d idle_requests_per_minute=%.1f idle_cpu_seconds=%.2f\n",
		r.Wall.Ratio, r.Wall.RatioFromFlip, r.Neighbour.Ratio, manager.PeakRSSMiB, manager.Requests.Total(), r.Idle.RequestsPerMinute, r.Idle.CPUSeconds)
	return nil
}

func newBench(ctx context.Context, plane *controlplane.ControlPlane, s settings, dir string) (*bench, error) {
	b := &bench{settings: s, plane: plane, dir: dir}
	err := b.installManager(ctx)
	if err != nil {
		return nil, err
	}
	if b.requests, err = account.CountRequests(ctx, plane.Config()); err != nil {
		return nil, err
	}
	if b.migrations, err = watchMigrations(ctx, plane.Config()); err != nil {
		return nil, err
	}
	if b.resources, err = widget.Define(ctx, plane, names("wall", s.crds)...); err != nil {
		return nil, err
	}
	measure.Say("creating %d objects of each of %d CRDs", s.objects, s.crds)
	for _, r := range b.resources {
		if err := r.Fill(ctx, s.objects); err != nil {
			return nil, err
		}
	}
	return b, nil
}
