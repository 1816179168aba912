package frame

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Each calls do for each element, width at a time, until one call fails.
func Each[T any](of []T, width int, do func(T) error) error {
	return Times(len(of), width, func(i int) error { return do(of[i]) })
}

// Times calls do with the numbers from 0 to n-1, width at a time, until one call fails.
func Times(n, width int, do func(i int) error) (failed error) {
	var next atomic.Int64
	var once sync.Once
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					once.Do(func() { failed = err })
					next.Store(int64(n))
				}
			}
		})
	}
	workers.Wait()
	return failed
}

// Names returns n names that begin with a prefix.
func Names(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return names
}
