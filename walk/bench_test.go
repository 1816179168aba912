package walk_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

// BenchmarkRun shows what the engine itself costs per object, with an action
// that does nothing, and that the heap does not grow with the collection:
// heap-B is the live heap in the middle of the walk.
func BenchmarkRun(b *testing.B) {
	for _, objects := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("objects=%d", objects), func(b *testing.B) {
			const size = walk.DefaultPageObjects
			fetch := endless(objects/size, size, func(int, *bird) {})
			act := func(context.Context, *bird) (godwit.Outcome, error) { return godwit.Migrated, nil }

			var before, after runtime.MemStats
			run := func(o walk.Options) {
				report, err := walk.Run(b.Context(), walk.List(b.Context(), fetch, walk.ListOptions{}), act, o)
				if err != nil || report.Counts.Migrated != int64(objects) {
					b.Fatal(report.Counts, err)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&before)
			page, heap := 0, int64(0)
			run(walk.Options{OnPage: func(context.Context, walk.Report) error {
				if page++; page == objects/size/2 {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					heap = int64(m.HeapAlloc) - int64(before.HeapAlloc)
				}
				return nil
			}})

			runtime.ReadMemStats(&before)
			for b.Loop() {
				run(walk.Options{})
			}
			runtime.ReadMemStats(&after)
			n := float64(b.N) * float64(objects)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/object")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/object")
			b.ReportMetric(float64(heap), "heap-B")
			b.ReportMetric(0, "ns/op") // of a whole walk: of no interest
		})
	}
}

// BenchmarkLimiter is one acquire and one release: alone, with as many
// goroutines as may pass at once, and with four times as many, which queue.
func BenchmarkLimiter(b *testing.B) {
	for _, goroutines := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			l := walk.NewLimiter(walk.Limits{})
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for range b.N / goroutines {
						if err := l.Pass(b.Context()); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
