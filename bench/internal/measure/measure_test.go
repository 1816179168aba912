package measure

import (
	"errors"
	"sync/atomic"
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

func TestEach(t *testing.T) {
	var sum atomic.Int64
	add := func(n int64) error { sum.Add(n); return nil }
	if err := Each([]int64{1, 2, 3, 4}, 2, add); err != nil || sum.Load() != 10 {
		t.Errorf("got %d, %v, want 10: each of them once", sum.Load(), err)
	}
	broken := errors.New("broken")
	several := make([]int64, 100)
	for i := range several {
		several[i] = int64(i)
	}
	for _, at := range []int64{0, 99} {
		err := Each(several, 8, func(n int64) error {
			if n == at {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) {
			t.Errorf("got %v, want the error of number %d", err, at)
		}
	}
	if err := Each(several, 8, func(int64) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, where all fail", err)
	}
}

// TestBest goes by the median: one lucky round is not the best width.
func TestBest(t *testing.T) {
	rounds := []map[int]float64{{8: 10, 16: 9}, {8: 10, 16: 90}, {8: 11, 16: 9}}
	if width, speed := Best(rounds, func(r map[int]float64, w int) float64 { return r[w] }); width != 8 || speed != 10 {
		t.Errorf("%d, at %v", width, speed)
	}
	if width, speed := Best(nil, func(map[int]float64, int) float64 { return 1 }); width != 0 || speed != 0 {
		t.Errorf("of no round: %d, at %v", width, speed)
	}
}
