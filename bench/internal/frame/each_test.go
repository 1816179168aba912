package frame

import (
	"errors"
	"sync/atomic"
	"testing"
)

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
