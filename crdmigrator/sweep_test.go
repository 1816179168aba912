package crdmigrator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/storageversion/recent"
)

// Entries of deleted objects are never asked for again: only the sweep ends them.
func TestSweepEndsWhatIsOver(t *testing.T) {
	for name, test := range map[string]struct {
		interval time.Duration
		kept     time.Duration // at that age an entry is still there
		gone     time.Duration
	}{
		"ten minutes by default": {kept: recent.Kept + 9*time.Minute, gone: recent.Kept + 10*time.Minute},
		"as configured":          {interval: time.Minute, kept: recent.Kept, gone: recent.Kept + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &CRDMigrator{CacheGCInterval: test.interval, recent: recent.New(clock.RealClock{})}
				ctx, stop := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer stop()
				go func() { _ = r.sweep(ctx) }()
				time.Sleep(time.Second) // so that no entry ends at a tick
				begun := time.Now()
				r.recent.Add(recent.Write{Object: "goose"})
				for _, look := range []struct {
					age  time.Duration
					want int
				}{{test.kept, 1}, {test.gone, 0}} {
					time.Sleep(look.age - time.Since(begun))
					synctest.Wait()
					if got := r.recent.Len(); got != look.want {
						t.Errorf("%d entries after %v, want %d", got, look.age, look.want)
					}
				}
			})
		})
	}
}
