package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRate: the ceiling is the best width, ratios are those within a round, and a turn that failed counts for nothing.
func TestRate(t *testing.T) {
	of := func(round int, name string, speed, cpu float64) Turn {
		return Turn{Round: round, Contestant: name, Objects: 1, Cost: Cost{PerSecond: speed, APIServer: cpu}}
	}
	r := Peers{Turns: []Turn{
		of(1, "raw-8", 500, 3), of(1, "raw-16", 800, 4), of(1, "raw-24", 700, 5),
		of(2, "raw-8", 250, 3), of(2, "raw-16", 400, 4), of(2, "raw-24", 350, 5),
		of(1, "godwit-patch", 720, 4.4), of(2, "godwit-patch", 400, 4),
		{Round: 1, Contestant: "ksvm", Error: "it ended by itself"},
	}}
	r.Rate()
	if r.Ceiling != "raw-16" {
		t.Errorf("the ceiling is %s, want raw-16", r.Ceiling)
	}
	got := r.Medians["godwit-patch"]
	if want := (Median{Cost: Cost{PerSecond: 560, APIServer: 4.2}, ToCeiling: 0.95, CPUToCeiling: 1.05}); !cmp.Equal(got, want) {
		t.Errorf("godwit: %s", cmp.Diff(want, got))
	}
	if _, found := r.Medians["ksvm"]; found {
		t.Error("a contestant that failed has a median")
	}
	if want := map[string]string{"ksvm": "it ended by itself"}; !cmp.Equal(r.Failures(), want) {
		t.Errorf("failures: %s", cmp.Diff(want, r.Failures()))
	}
}
