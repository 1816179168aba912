package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/bench/internal/frame"
)

// result is the content of bench/out/hub.json.
type result struct {
	Clusters int   `json:"clusters"`
	Move     moved `json:"move"`
	Floor    floor `json:"floor"`
	// RatioToFloor compares with the bare switch, and RatioToFloors with the switch and the removal together.
	RatioToFloor  float64 `json:"ratioToFloor"`
	RatioToFloors float64 `json:"ratioToFloors"`
	// KafkaBytes is the size of all topics of Godwit, with heartbeats.
	KafkaBytes int64 `json:"kafkaBytes"`
	Manager    part  `json:"manager"`
	Source     part  `json:"source"`
	Target     part  `json:"target"`
}

func main() {
	r := &result{}
	flag.IntVar(&r.Clusters, "clusters", 300, "clusters that move")
	ctrl.SetLogger(logr.Discard())
	frame.Main("hub", r)
}

// Measure implements [frame.Benchmark].
func (r *result) Measure(ctx context.Context, b *frame.Bench) error {
	f, err := startFleet(ctx, b)
	if err != nil {
		return err
	}
	frame.Logf("the floor: a bare switch of %d clusters, and their removal from the source", r.Clusters)
	if r.Floor, err = measureFloor(ctx, f, r.Clusters); err != nil {
		return fmt.Errorf("measure the floor: %w", err)
	}
	frame.Logf("the switch takes %.1f s, the removal %.1f s", r.Floor.SwitchSeconds, r.Floor.RemovalSeconds)
	return r.migrate(ctx, b, f)
}

// migrate creates the clusters and measures how they move.
func (r *result) migrate(ctx context.Context, b *frame.Bench, f *fleet) error {
	first, all := frame.Names("first", 1), frame.Names("move", r.Clusters)
	if err := f.create(ctx, append(first, all...), ""); err != nil {
		return err
	}
	if err := frame.Each(append(first, all...), writers, func(name string) error { return f.equip(ctx, name) }); err != nil {
		return err
	}
	in, err := install(ctx, b, f)
	if err != nil {
		return err
	}
	// A hub is ready at its second heartbeat after the enrollment. This migration waits for that, so that the next one does not.
	frame.Logf("a migration of one cluster, when both hubs are ready")
	if _, err := in.measureMove(ctx, "first", first); err != nil {
		return fmt.Errorf("move the first cluster: %w", err)
	}
	before, err := in.sent()
	if err != nil {
		return err
	}
	frame.Logf("a migration of %d clusters", r.Clusters)
	if r.Move, err = in.measureMove(ctx, "move", all); err != nil {
		return fmt.Errorf("measure the move: %w", err)
	}
	r.RatioToFloor = frame.Ratio(r.Move.Seconds, r.Floor.SwitchSeconds)
	r.RatioToFloors = frame.Ratio(r.Move.Seconds, r.Floor.SwitchSeconds+r.Floor.RemovalSeconds)
	var errs [4]error
	r.Manager, errs[0] = cost(in.manager)
	r.Source, errs[1] = cost(in.source)
	r.Target, errs[2] = cost(in.target)
	r.KafkaBytes, errs[3] = in.sent()
	r.KafkaBytes -= before
	return errors.Join(errs[:]...)
}

// Summary implements [frame.Benchmark].
func (r *result) Summary() string {
	return fmt.Sprintf("hub: clusters=%d seconds=%.1f ratio_to_floor=%.2f rss_manager=%.0f rss_source=%.0f rss_target=%.0f",
		r.Clusters, r.Move.Seconds, r.RatioToFloor, r.Manager.PeakRSSMiB, r.Source.PeakRSSMiB, r.Target.PeakRSSMiB)
}
