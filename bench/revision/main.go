package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/walk"
)

func main() {
	r := &result{PeakRSS: map[int]int64{}}
	flag.IntVar(&r.VMs, "n", 1000, "VirtualMachines")
	flag.IntVar(&r.Namespaces, "namespaces", 20, "namespaces of the VirtualMachines")
	flag.IntVar(&r.Rounds, "rounds", 5, "rounds of the measurement of speed")
	flag.IntVar(&r.times, "larger", 10, "measure memory with this many times as many VirtualMachines; 0 does not")
	flag.IntVar(&r.planVMs, "plan", 0, "measure a plan of this many VirtualMachines as well, in namespaces of 1000; 0 does not")
	frame.Main("revision", r)
}

// Measure implements [frame.Benchmark].
func (r *result) Measure(ctx context.Context, b *frame.Bench) error {
	f, err := startFleet(ctx, b, r.Namespaces)
	if err != nil {
		return err
	}
	if err := f.grow(ctx, r.VMs); err != nil {
		return err
	}
	if err := r.measureSpeed(ctx, f); err != nil {
		return fmt.Errorf("measure the speed: %w", err)
	}
	if err := r.measureLarger(ctx, f); err != nil {
		return fmt.Errorf("measure more VirtualMachines: %w", err)
	}
	r.rate()
	if r.planVMs == 0 {
		return nil
	}
	if err := f.Stop(); err != nil { // the plan of a large cluster needs the memory
		return err
	}
	r.Plan, err = measurePlan(ctx, b, r.planVMs)
	return err
}

// measureSpeed lets godwit and the ceiling take turns. Each turn begins with every VirtualMachine at its old revisions. The
// ceiling creates what godwit creates before the first round.
func (r *result) measureSpeed(ctx context.Context, f *fleet) error {
	if _, err := f.runUpgrade(ctx); err != nil {
		return err
	}
	if err := f.keepReplacements(ctx); err != nil {
		return err
	}
	for i := range r.Rounds {
		one := round{Ceiling: map[int]speed{}, LoadAverage: proc.LoadAverage()}
		if err := frame.TakeTurns(ctx, i, f.reset, turns(f, &one)); err != nil {
			return err
		}
		r.Runs = append(r.Runs, one)
	}
	return f.reset(ctx)
}

func turns(f *fleet, one *round) []frame.Turn {
	all := []frame.Turn{
		func(ctx context.Context) (_ string, err error) {
			one.Godwit, err = f.runUpgrade(ctx)
			return fmt.Sprintf("godwit revision run: %.1f VirtualMachines/s, %.1f MiB", one.Godwit.VMsPerSecond, one.Godwit.PeakRSSMiB()), err
		},
		func(ctx context.Context) (_ string, err error) {
			one.WithoutRetention, err = f.upgrade(ctx, walk.DefaultMaxInFlight, false)
			return fmt.Sprintf("ceiling without retention: %.1f VirtualMachines/s", one.WithoutRetention.VMsPerSecond), err
		},
	}
	for _, width := range frame.InFlight {
		all = append(all, func(ctx context.Context) (string, error) {
			s, err := f.upgrade(ctx, width, true)
			one.Ceiling[width] = s
			return fmt.Sprintf("ceiling, %2d in flight: %.1f VirtualMachines/s", width, s.VMsPerSecond), err
		})
	}
	return all
}

// measureLarger measures each run once, over more VirtualMachines.
func (r *result) measureLarger(ctx context.Context, f *fleet) error {
	if r.times == 0 {
		return nil
	}
	r.Larger.VMs = r.times * r.VMs
	if err := f.grow(ctx, r.Larger.VMs); err != nil {
		return err
	}
	for _, one := range []struct {
		name string
		into *pass
		run  func(context.Context) (pass, error)
	}{
		{"plan", &r.Larger.Plan, func(ctx context.Context) (pass, error) { return f.runPlan(ctx, r.Larger.VMs) }},
		{"upgrade", &r.Larger.Upgrade, f.runUpgrade},
		{"removal of old revisions", &r.Larger.Removal, func(ctx context.Context) (pass, error) {
			if err := f.endRetention(ctx); err != nil {
				return pass{}, err
			}
			return f.runRemoval(ctx)
		}},
		{"run with nothing to do", &r.Larger.Idle, f.runIdle},
	} {
		var err error
		if *one.into, err = one.run(ctx); err != nil {
			return err
		}
		frame.Logf("%s, %d VirtualMachines: %.2f s, %.1f MiB", one.name, r.Larger.VMs, one.into.Seconds, one.into.PeakRSSMiB())
	}
	return nil
}
