// Command revision measures `godwit revision run` on virtual machines of which each
// has a revision of an instance type and one of a preference, at versions that KubeVirt
// can no longer read.
//
// The ceiling is a loop that knows beforehand what is to be written, and sends that
// alone. Both run against the same control plane, in turns and several times, since a
// machine that is shared is never equally fast twice: what counts is the ratio within
// one run of this command. Whatever is timed is looked at afterwards: every reference
// must lead to a revision at the target version, or there is no result.
//
// Memory is the peak of the process at n and at ten times n. What a second run costs,
// which removes the old revisions, and a third, which finds nothing to do, is measured
// at ten times n.
//
// Read fleet.go (the machines), check.go (whether they are upgraded), command.go (a run
// of godwit) and ceiling.go, then this; plan.go is about a cluster that is too large to
// be made by an API server.
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
	VMs            int                `json:"vms"`
	Namespaces     int                `json:"namespaces"`
	Rounds         int                `json:"rounds"`
	VMsPerSecond   float64            `json:"vmsPerSecond"`
	Ceiling        ceiling            `json:"ceiling"`
	RatioToCeiling float64            `json:"ratioToCeiling"`
	RatioPerRound  []float64          `json:"ratioPerRound"`
	RequestsPerVM  float64            `json:"requestsPerVM"`
	RequestsByVerb map[string]float64 `json:"requestsPerVMByVerb"`
	PeakRSS        map[int]int64      `json:"peakRSSBytes"`
	RSSSlope       float64            `json:"rssSlopeBytesPerVM"`
	Runs           []round            `json:"runs"`
	// Larger are the passes over more machines.
	Larger passes `json:"larger"`
	// Plan is of a whole cluster, if that was asked for.
	Plan *plan `json:"plan,omitempty"`
}

type ceiling struct {
	InFlight     int     `json:"inFlight"`
	VMsPerSecond float64 `json:"vmsPerSecond"`
}

// round is one turn of everything.
type round struct {
	Godwit  pass            `json:"godwit"`
	Ceiling map[int]float64 `json:"ceilingByInFlight"` // in machines per second
	// LoadAverage is the machine's over the minute before.
	LoadAverage float64 `json:"loadAverage"`
}

// passes lead machines from their old revisions to the end.
type passes struct {
	VMs int `json:"vms"`
	// Plan only reads.
	Plan pass `json:"plan"`
	// Upgrade makes new revisions and leads every reference to them.
	Upgrade pass `json:"upgrade"`
	// Removal comes when the retention of the old ones is over.
	Removal pass `json:"removal"`
	// Idle finds nothing to do.
	Idle pass `json:"idle"`
}

func main() {
	var s settings
	flag.IntVar(&s.vms, "n", 1000, "virtual machines")
	flag.IntVar(&s.namespaces, "namespaces", 20, "namespaces that they are in")
	flag.IntVar(&s.rounds, "rounds", 3, "turns of the measurement of speed")
	flag.IntVar(&s.larger, "larger", 10, "how many times as many machines memory is measured at; 0 for not at all")
	flag.IntVar(&s.plan, "plan", 0, "machines that a plan is measured at besides, in namespaces of 1000; 0 for not at all")
	flag.StringVar(&s.binary, "godwit", "../bin/godwit", "the command to measure")
	out := flag.String("out", "out/revision.json", "where the result goes")
	flag.Parse()
	os.Exit(measure.Main(context.Background(), func(ctx context.Context) error {
		r, err := run(ctx, s)
		if err != nil {
			return err
		}
		return r.write(*out) // once the servers are gone, and nothing says more
	}))
}

func run(ctx context.Context, s settings) (result, error) {
	r := result{VMs: s.vms, Namespaces: s.namespaces, Rounds: s.rounds, PeakRSS: map[int]int64{}}
	if s.vms < fewest {
		return r, fmt.Errorf("the memory of a run over fewer than %d machines can't be told: raise -n", fewest)
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

// onControlPlane lends a control plane with KubeVirt's definitions, and no machine yet.
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

// measureSpeed lets godwit and the ceiling take turns. Each turn begins with every
// machine at its old revisions. What godwit makes in a turn that does not count is
// what the ceiling makes.
func (r *result) measureSpeed(ctx context.Context, f *fleet, c *command) error {
	if _, err := c.upgrade(ctx, f); err != nil {
		return err
	}
	if err := f.learn(ctx); err != nil {
		return err
	}
	for i := range r.Rounds {
		turn := round{Ceiling: map[int]float64{}, LoadAverage: proc.LoadAverage()}
		var err error
		for _, width := range measure.InFlight {
			if err := f.reset(ctx); err != nil {
				return err
			}
			if turn.Ceiling[width], err = f.upgrade(ctx, width); err != nil {
				return err
			}
			measure.Say("round %d: ceiling, %2d in flight: %.1f machines/s", i+1, width, turn.Ceiling[width])
		}
		if err := f.reset(ctx); err != nil {
			return err
		}
		if turn.Godwit, err = c.upgrade(ctx, f); err != nil {
			return err
		}
		measure.Say("round %d: godwit revision run: %.1f machines/s, %.1f MiB", i+1, turn.Godwit.VMsPerSecond, turn.Godwit.PeakRSSMiB())
		r.Runs = append(r.Runs, turn)
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
	measure.Say("upgrade of %d: %.1f machines/s, %.1f MiB", r.Larger.VMs, r.Larger.Upgrade.VMsPerSecond, r.Larger.Upgrade.PeakRSSMiB())
	if err := f.age(ctx); err != nil {
		return err
	}
	if r.Larger.Removal, err = c.remove(ctx, f); err != nil {
		return err
	}
	measure.Say("removal of their old revisions: %.1f machines/s, %.1f MiB", r.Larger.Removal.VMsPerSecond, r.Larger.Removal.PeakRSSMiB())
	if r.Larger.Idle, err = c.idle(ctx, f); err != nil {
		return err
	}
	measure.Say("with nothing to do: %.2f s", r.Larger.Idle.Seconds)
	return nil
}

// rate picks the ceiling's width by its median, and compares round by round.
func (r *result) rate() {
	r.Ceiling.InFlight, r.Ceiling.VMsPerSecond = measure.Best(r.Runs, func(t round, width int) float64 { return t.Ceiling[width] })
	for _, t := range r.Runs {
		r.RatioPerRound = append(r.RatioPerRound, measure.Ratio(t.Godwit.VMsPerSecond, t.Ceiling[r.Ceiling.InFlight]))
	}
	r.RatioToCeiling = measure.Median(r.RatioPerRound, func(f float64) float64 { return f })
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
	fmt.Printf("revision: vms_per_second=%.1f requests_per_vm=%.2f rss_slope_bytes=%.0f\n", r.VMsPerSecond, r.RequestsPerVM, r.RSSSlope)
	return nil
}
