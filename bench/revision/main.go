// Command revision measures `godwit revision run` on VirtualMachines of which each has a revision
// of an instance type and one of a preference, at versions that KubeVirt can no longer read.
//
// The ceiling is a client that knows beforehand what to write, sends nothing else, and leaves the
// same objects: for each VirtualMachine it creates two revisions, repoints the spec and the
// status, and writes to both old revisions since when no object refers to them. These last two
// writes are what the retention is counted by, so that a client without them could never delete
// an old revision safely. A second number is of the same client without them.
//
// Both run against the same control plane, in turns and several times, since other processes of a
// machine change how fast it is: the result is the ratio within one run of this command. The
// ratio of CPU times depends less on other processes, but it does depend on them: they share
// caches and cores with what is measured. Compare only results of a quiet machine.
// After each measurement every reference must name a revision at the target version, or there is
// no result.
//
// Memory is the peak of the process at n and at ten times n. A second run, which deletes the old
// revisions, and a third, which finds nothing to do, are measured at ten times n.
//
// Read fleet.go (the VirtualMachines), check.go (whether they are upgraded), ceiling.go and
// command.go (a run of godwit), then main.go. plan.go measures a cluster that is too large to be
// created by an API server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/walk"
)

// settings are what the flags say.
type settings struct {
	binary     string
	vms        int
	namespaces int
	rounds     int
	larger     int
	plan       int
}

// result is what is written to bench/out/revision.json.
type result struct {
	VMs            int       `json:"vms"`
	Namespaces     int       `json:"namespaces"`
	Rounds         int       `json:"rounds"`
	VMsPerSecond   float64   `json:"vmsPerSecond"`
	Ceiling        ceiling   `json:"ceiling"`
	RatioToCeiling float64   `json:"ratioToCeiling"`
	RatioPerRound  []float64 `json:"ratioPerRound"`
	// RatioOfCPU compares the CPU time of all processes for one VirtualMachine: 1 is as little as
	// the ceiling's.
	RatioOfCPU float64 `json:"ratioOfCPUTime"`
	// RatioWithoutRetention compares with a client that does not write since when old revisions
	// are unreferenced.
	RatioWithoutRetention float64 `json:"ratioToCeilingWithoutRetention"`

	RequestsPerVM  float64            `json:"requestsPerVM"`
	RequestsByVerb map[string]float64 `json:"requestsPerVMByVerb"`
	PeakRSS        map[int]int64      `json:"peakRSSBytes"`
	RSSSlope       float64            `json:"rssSlopeBytesPerVM"`
	Runs           []round            `json:"runs"`
	// Larger are the passes over more VirtualMachines.
	Larger passes `json:"larger"`
	// Plan is of a whole cluster; nil unless -plan is given.
	Plan *plan `json:"plan,omitempty"`
}

type ceiling struct {
	InFlight     int     `json:"inFlight"`
	VMsPerSecond float64 `json:"vmsPerSecond"`
}

// round measures each client once.
type round struct {
	Godwit           pass          `json:"godwit"`
	Ceiling          map[int]speed `json:"ceilingByInFlight"`
	WithoutRetention speed         `json:"ceilingWithoutRetention"`
	// LoadAverage is the machine's over the minute before.
	LoadAverage float64 `json:"loadAverage"`
}

// passes upgrade VirtualMachines from the plan to the deletion of their old revisions.
type passes struct {
	VMs int `json:"vms"`
	// Plan only reads.
	Plan pass `json:"plan"`
	// Upgrade creates new revisions and repoints every reference.
	Upgrade pass `json:"upgrade"`
	// Removal deletes the old revisions, whose retention is over.
	Removal pass `json:"removal"`
	// Idle finds nothing to do.
	Idle pass `json:"idle"`
}

func main() {
	var s settings
	flag.IntVar(&s.vms, "n", 1000, "VirtualMachines")
	flag.IntVar(&s.namespaces, "namespaces", 20, "namespaces of the VirtualMachines")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds of the measurement of speed")
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

// onControlPlane works on a control plane that has KubeVirt's CRDs, and no VirtualMachine yet.
func onControlPlane(ctx context.Context, binary string, namespaces int, work func(*fleet, *command) error) (err error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := cluster.Install(ctx, plane.Config()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	user, err := account.AddUser(ctx, plane, "godwit", account.Godwit)
	if err != nil {
		return err
	}
	c, err := newCommand(ctx, binary, filepath.Join(dir, "kubeconfig"), user, plane.Config())
	if err != nil {
		return err
	}
	f, err := newFleet(ctx, plane, user, namespaces)
	if err != nil {
		return err
	}
	return work(f, c)
}

// measureSpeed measures godwit and the ceiling in turns. Each begins with every VirtualMachine at
// its old revisions. The ceiling creates what godwit creates before the first round.
func (r *result) measureSpeed(ctx context.Context, f *fleet, c *command) error {
	if _, err := c.upgrade(ctx, f); err != nil {
		return err
	}
	if err := f.keepReplacements(ctx); err != nil {
		return err
	}
	for i := range r.Rounds {
		one := round{Ceiling: map[int]speed{}, LoadAverage: proc.LoadAverage()}
		var err error
		for _, width := range measure.InFlight {
			if one.Ceiling[width], err = f.resetAndUpgrade(ctx, width, true); err != nil {
				return err
			}
			measure.Say("round %d: ceiling, %2d in flight: %.1f VirtualMachines/s", i+1, width, one.Ceiling[width].VMsPerSecond)
		}
		if one.WithoutRetention, err = f.resetAndUpgrade(ctx, walk.DefaultMaxInFlight, false); err != nil {
			return err
		}
		measure.Say("round %d: ceiling without retention: %.1f VirtualMachines/s", i+1, one.WithoutRetention.VMsPerSecond)
		if err := f.reset(ctx); err != nil {
			return err
		}
		if one.Godwit, err = c.upgrade(ctx, f); err != nil {
			return err
		}
		measure.Say("round %d: godwit revision run: %.1f VirtualMachines/s, %.1f MiB", i+1, one.Godwit.VMsPerSecond, one.Godwit.PeakRSSMiB())
		r.Runs = append(r.Runs, one)
	}
	return f.reset(ctx)
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

// rate picks the ceiling's width by its median, and compares round by round.
func (r *result) rate() {
	r.Ceiling.InFlight, r.Ceiling.VMsPerSecond = measure.Best(r.Runs, func(t round, width int) float64 { return t.Ceiling[width].VMsPerSecond })
	for _, t := range r.Runs {
		r.RatioPerRound = append(r.RatioPerRound, measure.Ratio(t.Godwit.VMsPerSecond, t.Ceiling[r.Ceiling.InFlight].VMsPerSecond))
	}
	r.RatioToCeiling = measure.Median(r.RatioPerRound, func(f float64) float64 { return f })
	r.RatioOfCPU = measure.Median(r.Runs, func(t round) float64 {
		return measure.Ratio(t.Ceiling[r.Ceiling.InFlight].CPUPerVM, t.Godwit.CPUPerVM)
	})
	r.RatioWithoutRetention = measure.Median(r.Runs, func(t round) float64 {
		return measure.Ratio(t.Godwit.VMsPerSecond, t.WithoutRetention.VMsPerSecond)
	})
	of := func(value func(pass) float64) float64 {
		return measure.Median(r.Runs, func(t round) float64 { return value(t.Godwit) })
	}
	r.VMsPerSecond = of(func(p pass) float64 { return p.VMsPerSecond })
	r.RequestsPerVM = of(func(p pass) float64 { return p.RequestsPerVM })
	r.RequestsByVerb = map[string]float64{}
	for _, t := range r.Runs {
		for verb := range t.Godwit.Requests {
			r.RequestsByVerb[verb] = of(func(p pass) float64 { return float64(p.Requests[verb]) / float64(r.VMs) })
		}
	}
	r.PeakRSS[r.VMs] = int64(of(func(p pass) float64 { return float64(p.PeakRSS) }))
	if r.Larger.VMs == 0 {
		return
	}
	r.PeakRSS[r.Larger.VMs] = r.Larger.Upgrade.PeakRSS
	r.RSSSlope = measure.Ratio(float64(r.PeakRSS[r.Larger.VMs]-r.PeakRSS[r.VMs]), float64(r.Larger.VMs-r.VMs))
}

func (r result) write(path string) error {
	if err := measure.Write(os.Stdout, path, r); err != nil {
		return err
	}
	fmt.Printf("revision: vms_per_second=%.1f ratio_to_ceiling=%.2f ratio_of_cpu_time=%.2f ratio_without_retention=%.2f requests_per_vm=%.2f rss_slope_bytes=%.0f\n",
		r.VMsPerSecond, r.RatioToCeiling, r.RatioOfCPU, r.RatioWithoutRetention, r.RequestsPerVM, r.RSSSlope)
	return nil
}
