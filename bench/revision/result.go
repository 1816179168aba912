package main

import (
	"fmt"

	"github.com/godwit-dev/godwit/bench/internal/frame"
)

// result is the content of bench/out/revision.json.
type result struct {
	VMs            int       `json:"vms"`
	Namespaces     int       `json:"namespaces"`
	Rounds         int       `json:"rounds"`
	VMsPerSecond   float64   `json:"vmsPerSecond"`
	Ceiling        ceiling   `json:"ceiling"`
	RatioToCeiling float64   `json:"ratioToCeiling"`
	RatioPerRound  []float64 `json:"ratioPerRound"`
	// RatioOfCPU compares the CPU time of all processes for one VirtualMachine with the ceiling: 1 means the same.
	RatioOfCPU float64 `json:"ratioOfCPUTime"`
	// RatioWithoutRetention compares with a client that does not write the time since which old
	// revisions are unreferenced.
	RatioWithoutRetention float64 `json:"ratioToCeilingWithoutRetention"`

	RequestsPerVM  float64            `json:"requestsPerVM"`
	RequestsByVerb map[string]float64 `json:"requestsPerVMByVerb"`
	PeakRSS        map[int]int64      `json:"peakRSSBytes"`
	RSSSlope       float64            `json:"rssSlopeBytesPerVM"`
	Runs           []round            `json:"runs"`
	// Larger are the passes over more VirtualMachines.
	Larger passes `json:"larger"`
	// Plan is the plan of a large cluster; nil without the flag -plan.
	Plan *plan `json:"plan,omitempty"`

	times, planVMs int
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
	// LoadAverage is the load average of the machine over the minute before.
	LoadAverage float64 `json:"loadAverage"`
}

// passes are all steps of an upgrade, from the plan to the deletion of the old revisions.
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
	r.Ceiling.InFlight, r.Ceiling.VMsPerSecond = frame.Ceiling(r.Runs, func(t round, width int) float64 { return t.Ceiling[width].VMsPerSecond })
	for _, t := range r.Runs {
		r.RatioPerRound = append(r.RatioPerRound, frame.Ratio(t.Godwit.VMsPerSecond, t.Ceiling[r.Ceiling.InFlight].VMsPerSecond))
	}
	r.RatioToCeiling = frame.Median(r.RatioPerRound, func(f float64) float64 { return f })
	vmsPerSecond := func(t round) float64 { return t.Godwit.VMsPerSecond }
	r.RatioOfCPU = frame.MedianRatio(r.Runs, func(t round) float64 { return t.Ceiling[r.Ceiling.InFlight].CPUPerVM }, func(t round) float64 { return t.Godwit.CPUPerVM })
	r.RatioWithoutRetention = frame.MedianRatio(r.Runs, vmsPerSecond, func(t round) float64 { return t.WithoutRetention.VMsPerSecond })
	r.VMsPerSecond = frame.Median(r.Runs, vmsPerSecond)
	of := func(value func(pass) float64) float64 {
		return frame.Median(r.Runs, func(t round) float64 { return value(t.Godwit) })
	}
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
	r.RSSSlope = frame.Ratio(float64(r.PeakRSS[r.Larger.VMs]-r.PeakRSS[r.VMs]), float64(r.Larger.VMs-r.VMs))
}

// Summary implements [frame.Benchmark].
func (r *result) Summary() string {
	return fmt.Sprintf("revision: vms_per_second=%.1f ratio_to_ceiling=%.2f ratio_of_cpu_time=%.2f ratio_without_retention=%.2f requests_per_vm=%.2f rss_slope_bytes=%.0f",
		r.VMsPerSecond, r.RatioToCeiling, r.RatioOfCPU, r.RatioWithoutRetention, r.RequestsPerVM, r.RSSSlope)
}
