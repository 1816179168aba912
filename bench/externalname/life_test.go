package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/bench/internal/account"
)

// TestCostOf: what was counted before a phase is not of the phase, and each object has its share.
func TestCostOf(t *testing.T) {
	began := time.Unix(0, 0)
	before := count{api: account.Count{"get": 5, "patch": 1}, external: account.Count{"GET /databases/{id}": 3}, reconciles: 10, cpu: 1, time: began}
	after := count{
		api: account.Count{"get": 5, "patch": 5, "create": 2}, external: account.Count{"GET /databases/{id}": 5, "POST /databases": 2},
		reconciles: 14, cpu: 1.5, time: began.Add(3 * time.Second),
	}
	want := cost{API: 3, ByVerb: map[string]float64{"patch": 2, "create": 1}, External: 2, Reconciles: 2, CPU: 250, Seconds: 3}
	if diff := cmp.Diff(want, costOf(before, after, 2)); diff != "" {
		t.Errorf("cost of two objects (-want +got):\n%s", diff)
	}
}

// TestRate: a controller that sends more requests has a greater ratio, in its life and at rest, and one bad round of three does not count.
func TestRate(t *testing.T) {
	lives := func(create, observe float64) life {
		return life{
			created: {API: create, External: 2}, observed: {API: observe, External: 1, CPU: observe}, updated: {API: 2, External: 2}, deleted: {API: 1, External: 1},
		}
	}
	r := comparison{Rounds: []round{
		{Ours: lives(5, 2), ByHand: lives(4, 1)},
		{Ours: lives(50, 20), ByHand: lives(4, 1)},
		{Ours: lives(5, 2), ByHand: lives(4, 1)},
	}}
	r.rate()
	if got, want := r.RequestsRatio, 16.0/14; got != want {
		t.Errorf("ratio of lives is %v, want %v", got, want)
	}
	if r.RequestsRatioAtRest != 1.5 || r.CPURatioAtRest != 2 {
		t.Errorf("ratios at rest are %v of requests and %v of CPU time, want 1.5 and 2", r.RequestsRatioAtRest, r.CPURatioAtRest)
	}
}
