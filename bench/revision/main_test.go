package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/bench/internal/account"
)

// TestRate: the ratio is of rounds, at the width whose median is best, and not of the best rounds
// of either client.
func TestRate(t *testing.T) {
	of := func(godwit, narrow, wide float64, rss int64) round {
		return round{
			Godwit:  pass{speed: speed{godwit, 30}, RequestsPerVM: 8, Requests: account.Count{"get": 20, "patch": 60}, PeakRSS: rss},
			Ceiling: map[int]speed{8: {narrow, 10}, 16: {wide, 24}, 24: {1, 10}},

			WithoutRetention: speed{100, 20},
		}
	}
	r := result{VMs: 10, PeakRSS: map[int]int64{}, Runs: []round{of(30, 50, 60, 1000), of(20, 90, 50, 1200), of(40, 40, 80, 1100)}}
	r.Larger.VMs, r.Larger.Upgrade.PeakRSS = 100, 2000
	r.rate()
	want := result{
		VMs: 10, VMsPerSecond: 30, Ceiling: ceiling{InFlight: 16, VMsPerSecond: 60},
		RatioPerRound: []float64{0.5, 0.4, 0.5}, RatioToCeiling: 0.5, RatioOfCPU: 0.8, RatioWithoutRetention: 0.3,
		RequestsPerVM: 8, RequestsByVerb: map[string]float64{"get": 2, "patch": 6},
		PeakRSS: map[int]int64{10: 1100, 100: 2000}, RSSSlope: 10, Runs: r.Runs, Larger: r.Larger,
	}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(result{}, pass{})); diff != "" {
		t.Errorf("the rating differs (-want +got):\n%s", diff)
	}
}
