package main

import (
	"fmt"
	"os"

	"github.com/godwit-dev/godwit/bench/internal/measure"
)

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
	_, err := fmt.Fprintf(os.Stdout, "revision: vms_per_second=%.1f ratio_to_ceiling=%.2f ratio_of_cpu_time=%.2f ratio_without_retention=%.2f requests_per_vm=%.2f rss_slope_bytes=%.0f\n",
		r.VMsPerSecond, r.RatioToCeiling, r.RatioOfCPU, r.RatioWithoutRetention, r.RequestsPerVM, r.RSSSlope)
	return err
}
