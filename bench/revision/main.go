package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/walk"
)

func main() {
	var s settings
	flag.IntVar(&s.vms, "n", 1000, "VirtualMachines")
	flag.IntVar(&s.namespaces, "namespaces", 20, "namespaces of the VirtualMachines")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of the measurement of speed")
	flag.IntVar(&s.larger, "larger", 10, "measure memory with this many times as many VirtualMachines; 0 does not")
	flag.IntVar(&s.plan, "plan", 0, "measure a plan of this many VirtualMachines as well, in namespaces of 1000; 0 does not")
	flag.StringVar(&s.binary, "godwit", "../bin/godwit", "the command to measure")
	out := flag.String("out", "out/revision.json", "the `file` to write the result to")
	flag.Parse()
	os.Exit(measure.Main(context.Background(), func(ctx context.Context) error {
		r, err := run(ctx, s)
		if err != nil {
			return err
		}
		return r.write(*out) // when the servers, which log to stderr, have ended
	}))
}

func run(ctx context.Context, s settings) (result, error) {
	r := result{VMs: s.vms, Namespaces: s.namespaces, Rounds: s.rounds, PeakRSS: map[int]int64{}}
	if s.vms < fewest {
		return r, fmt.Errorf("the memory of a run over fewer than %d VirtualMachines can't be measured: raise -n", fewest)
	}
	err := onControlPlane(ctx, s.binary, s.namespaces, func(f *fleet, c *command) error {
		if err := f.grow(ctx, s.vms); err != nil {
			return err
		}
		if err := r.measureSpeed(ctx, f, c); err != nil {
			return fmt.Errorf("measure the speed: %w", err)
		}
		if s.larger == 0 {
			return nil
		}
		return r.measureLarger(ctx, f, c, s.larger*s.vms)
	})
	if err != nil {
		return r, err
	}
	r.rate()
	if s.plan == 0 {
		return r, nil
	}
	r.Plan, err = measurePlan(ctx, s)
	return r, err
}

// measureSpeed measures godwit and the ceiling in turns. Each begins with every VirtualMachine at
// its old revisions, and each round with another turn. The ceiling creates what godwit creates
// before the first round.
func (r *result) measureSpeed(ctx context.Context, f *fleet, c *command) error {
	if _, err := c.upgrade(ctx, f); err != nil {
		return err
	}
	if err := f.keepReplacements(ctx); err != nil {
		return err
	}
	all := turns(f, c)
	for i := range r.Rounds {
		one := round{Ceiling: map[int]speed{}, LoadAverage: proc.LoadAverage()}
		for n := range all {
			if err := f.reset(ctx); err != nil {
				return err
			}
			said, err := all[(i+n)%len(all)](ctx, &one)
			if err != nil {
				return err
			}
			measure.Say("round %d: %s", i+1, said)
		}
		r.Runs = append(r.Runs, one)
	}
	return f.reset(ctx)
}

// turn measures one client, and returns what to say about it.
type turn func(context.Context, *round) (string, error)

func turns(f *fleet, c *command) []turn {
	all := []turn{
		func(ctx context.Context, one *round) (string, error) {
			p, err := c.upgrade(ctx, f)
			one.Godwit = p
			return fmt.Sprintf("godwit revision run: %.1f VirtualMachines/s, %.1f MiB", p.VMsPerSecond, p.PeakRSSMiB()), err
		},
		func(ctx context.Context, one *round) (string, error) {
			s, err := f.upgrade(ctx, walk.DefaultMaxInFlight, false)
			one.WithoutRetention = s
			return fmt.Sprintf("ceiling without retention: %.1f VirtualMachines/s", s.VMsPerSecond), err
		},
	}
	for _, width := range measure.InFlight {
		all = append(all, func(ctx context.Context, one *round) (string, error) {
			s, err := f.upgrade(ctx, width, true)
			one.Ceiling[width] = s
			return fmt.Sprintf("ceiling, %2d in flight: %.1f VirtualMachines/s", width, s.VMsPerSecond), err
		})
	}
	return all
}

func (r *result) measureLarger(ctx context.Context, f *fleet, c *command, vms int) error {
	r.Larger.VMs = vms
	if err := f.grow(ctx, r.Larger.VMs); err != nil {
		return err
	}
	var err error
	if r.Larger.Plan, err = c.plan(ctx, r.Larger.VMs); err != nil {
		return err
	}
	measure.Say("plan of %d: %.2f s, %.1f MiB", r.Larger.VMs, r.Larger.Plan.Seconds, r.Larger.Plan.PeakRSSMiB())
	if r.Larger.Upgrade, err = c.upgrade(ctx, f); err != nil {
		return err
	}
	measure.Say("upgrade of %d: %.1f VirtualMachines/s, %.1f MiB", r.Larger.VMs, r.Larger.Upgrade.VMsPerSecond, r.Larger.Upgrade.PeakRSSMiB())
	if err := f.endRetention(ctx); err != nil {
		return err
	}
	if r.Larger.Removal, err = c.remove(ctx, f); err != nil {
		return err
	}
	measure.Say("removal of their old revisions: %.1f VirtualMachines/s, %.1f MiB", r.Larger.Removal.VMsPerSecond, r.Larger.Removal.PeakRSSMiB())
	if r.Larger.Idle, err = c.idle(ctx, f); err != nil {
		return err
	}
	measure.Say("with nothing to do: %.2f s", r.Larger.Idle.Seconds)
	return nil
}
