package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/bench/internal/measure"
)

// result is what is written to bench/out/hub.json.
type result struct {
	Clusters int   `json:"clusters"`
	Move     moved `json:"move"`
	Floor    floor `json:"floor"`
	// RatioToFloor is to the bare switch, and RatioToFloors to the switch and the removal together.
	RatioToFloor  float64 `json:"ratioToFloor"`
	RatioToFloors float64 `json:"ratioToFloors"`
	// KafkaBytes are those of all topics of Godwit, with heartbeats.
	KafkaBytes int64 `json:"kafkaBytes"`
	Manager    part  `json:"manager"`
	Source     part  `json:"source"`
	Target     part  `json:"target"`
}

func main() {
	clusters := flag.Int("clusters", 300, "clusters that move")
	godwit := flag.String("godwit", "../bin/godwit", "the command to measure")
	out := flag.String("out", "out/hub.json", "where the result goes")
	logs := flag.String("logs", "", "where the logs of the processes stay (default: nowhere)")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	os.Exit(measure.Main(context.Background(), func(ctx context.Context) error {
		r, err := run(ctx, *clusters, *godwit, *logs)
		if err != nil {
			return err
		}
		return r.write(*out) // once the servers are gone, and nothing says more
	}))
}

func run(ctx context.Context, clusters int, godwit, folder string) (r result, err error) {
	if folder == "" {
		if folder, err = os.MkdirTemp("", "godwit-bench-"); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	measure.Say("starting two hubs")
	hubs, err := startHubs(ctx, "hub1", "hub2")
	defer func() {
		for _, h := range hubs {
			if h != nil {
				err = errors.Join(err, h.Stop())
			}
		}
	}()
	if err != nil {
		return r, err
	}
	f := newFleet(hubs[0], hubs[1])
	played, end := context.WithCancel(ctx)
	defer end() // before the hubs
	if err := f.play(played); err != nil {
		return r, err
	}
	r = result{Clusters: clusters}
	measure.Say("the floor: a bare switch of %d clusters, and their removal from the source", clusters)
	if r.Floor, err = measureFloor(ctx, f, clusters); err != nil {
		return r, fmt.Errorf("measure the floor: %w", err)
	}
	measure.Say("the switch takes %.1f s, the removal %.1f s", r.Floor.SwitchSeconds, r.Floor.RemovalSeconds)
	return r, r.move(ctx, f, godwit, folder)
}

// move creates the clusters and measures how they move.
func (r *result) move(ctx context.Context, f *fleet, godwit, folder string) error {
	first, all := names("first", 1), names("move", r.Clusters)
	if err := f.create(ctx, f.source, append(first, all...), setup{configured: true}); err != nil {
		return err
	}
	if err := measure.Each(append(first, all...), atATime, func(name string) error { return f.equip(ctx, name) }); err != nil {
		return err
	}
	in, err := install(ctx, f, godwit, folder)
	if err != nil {
		return err
	}
	err = func() (err error) {
		// A hub is ready with its second heartbeat after it was enrolled. A migration before waits for that.
		measure.Say("a migration of one cluster, when both hubs are ready")
		if _, err := in.measureMove(ctx, "first", first); err != nil {
			return fmt.Errorf("move the first cluster: %w", err)
		}
		before, err := in.sent()
		if err != nil {
			return err
		}
		measure.Say("a migration of %d clusters", r.Clusters)
		if r.Move, err = in.measureMove(ctx, "move", all); err != nil {
			return fmt.Errorf("measure the move: %w", err)
		}
		r.RatioToFloor = measure.Ratio(r.Move.Seconds, r.Floor.SwitchSeconds)
		r.RatioToFloors = measure.Ratio(r.Move.Seconds, r.Floor.SwitchSeconds+r.Floor.RemovalSeconds)
		var errs [4]error
		r.Manager, errs[0] = cost(in.manager)
		r.Source, errs[1] = cost(in.source)
		r.Target, errs[2] = cost(in.target)
		r.KafkaBytes, errs[3] = in.sent()
		r.KafkaBytes -= before
		return errors.Join(errs[:]...)
	}()
	return errors.Join(err, in.stop())
}

func (r result) write(path string) error {
	if err := measure.Write(os.Stdout, path, r); err != nil {
		return err
	}
	fmt.Printf("hub: clusters=%d seconds=%.1f ratio_to_floor=%.2f rss_manager=%.0f rss_source=%.0f rss_target=%.0f\n",
		r.Clusters, r.Move.Seconds, r.RatioToFloor, r.Manager.PeakRSSMiB, r.Source.PeakRSSMiB, r.Target.PeakRSSMiB)
	return nil
}
