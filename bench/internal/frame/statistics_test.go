package frame

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	upTo := func(n int) []time.Duration {
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = time.Duration(n - i) // the last first: the order of the values must not matter
		}
		return all
	}
	cases := map[string]struct {
		reason string
		of     []time.Duration
		share  float64
		want   time.Duration
	}{
		"None":        {reason: "A window that was cut short at once measured nothing.", share: 0.99},
		"One":         {reason: "It is every percentile.", of: upTo(1), share: 0.5, want: 1},
		"P99Of100":    {reason: "One value in a hundred may be greater.", of: upTo(100), share: 0.99, want: 99},
		"P99Of101":    {reason: "One of 101 is less than a hundredth: that of the next would be too many.", of: upTo(101), share: 0.99, want: 100},
		"P50Of4":      {reason: "It is a value that was measured, not the mean of two.", of: upTo(4), share: 0.5, want: 2},
		"Maximum":     {reason: "All values are no greater than the greatest.", of: upTo(7), share: 1, want: 7},
		"P99OfFew":    {reason: "Of fewer than a hundred it is the greatest.", of: upTo(50), share: 0.99, want: 50},
		"LeastOfMany": {reason: "A share of less than one value is the least.", of: upTo(10), share: 0.01, want: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Percentile(c.of, c.share); got != c.want {
				t.Errorf("%s\ngot %d, want %d", c.reason, got, c.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	cases := map[string]struct {
		of   []float64
		want float64
	}{
		"None": {nil, 0},
		"Odd":  {[]float64{3, 1, 2}, 2},
		"Even": {[]float64{4, 1, 3, 2}, 2.5},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Median(c.of, func(f float64) float64 { return f }); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestRatio(t *testing.T) {
	if got := Ratio(3, 2); got != 1.5 {
		t.Errorf("got %v, want 1.5", got)
	}
	if got := Ratio(0, 0); got != 0 {
		t.Errorf("got %v of nothing, want 0, which can be written as JSON", got)
	}
}

// TestMedianRatio compares within each round: the slow round has the same ratio as the others.
func TestMedianRatio(t *testing.T) {
	rounds := [][2]float64{{90, 100}, {9, 10}, {80, 100}}
	got := MedianRatio(rounds, func(r [2]float64) float64 { return r[0] }, func(r [2]float64) float64 { return r[1] })
	if got != 0.9 {
		t.Errorf("got %v, want 0.9", got)
	}
}
