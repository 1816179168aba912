package walk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// writeLog records what is written to a server, and when.
type writeLog struct {
	mu      sync.Mutex
	entries []logged
}

type logged struct {
	at    time.Time
	bytes int64
}

// send takes 20 ms, and stores the object after 10 ms.
func (w *writeLog) send(bytes int64) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) {
		time.Sleep(10 * time.Millisecond)
		w.mu.Lock()
		w.entries = append(w.entries, logged{time.Now(), bytes})
		w.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		return bytes, nil
	}
}

func (w *writeLog) total() (sum int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.entries {
		sum += e.bytes
	}
	return sum
}

// most is the largest number of bytes that was written within five minutes.
func (w *writeLog) most() (most int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.entries, func(a, b logged) int { return a.at.Compare(b.at) })
	first, sum := 0, int64(0)
	for _, e := range w.entries {
		sum += e.bytes
		for e.at.Sub(w.entries[first].at) >= 5*time.Minute {
			sum -= w.entries[first].bytes
			first++
		}
		most = max(most, sum)
	}
	return most
}

// walkOver writes objects of the given sizes, as a migration would.
func walkOver(ctx context.Context, l *walk.Limiter, w *writeLog, sizes func(i int) int64, n int) (walk.Report, error) {
	return walkWith(ctx, l, sizes, n, func(ctx context.Context, bytes int64) error { return l.Write(ctx, w.send(bytes)) })
}

func walkWith(ctx context.Context, l *walk.Limiter, sizes func(i int) int64, n int, write func(context.Context, int64) error) (walk.Report, error) {
	birds, weight := make([]*bird, n), map[*bird]int64{}
	for i := range birds {
		birds[i] = &bird{name: fmt.Sprintf("b-%06d", i)}
		weight[birds[i]] = sizes(i)
	}
	pages := func(yield func(walk.Page[*bird], error) bool) { yield(walk.Page[*bird]{Items: birds}, nil) }
	act := func(ctx context.Context, b *bird) (godwit.Outcome, error) {
		if err := write(ctx, weight[b]); err != nil {
			return godwit.Failed, err
		}
		return godwit.Migrated, nil
	}
	return walk.Run(ctx, pages, act, walk.Options{Limiter: l})
}

// TestByteBudgetHoldsOverAnyFiveMinutes uses objects of several sizes, and two walks
// that share the budget.
func TestByteBudgetHoldsOverAnyFiveMinutes(t *testing.T) {
	const budget = 64 * mib
	cases := map[string]struct {
		reason string
		size   func(i int) int64
		n      int
	}{
		"small": {"most custom resources are small", func(int) int64 { return 20 * kib }, 12_000},
		"mixed": {"a mean size would predict neither", func(int) int64 { return []int64{kib, 100 * kib}[rand.IntN(2)] }, 6000},
		"small, then large": {"former sizes do not predict later ones", func(i int) int64 {
			if i < 2000 {
				return kib
			}
			return 1500 * kib
		}, 2200},
		"every tenth large": {"a regular pattern", func(i int) int64 {
			if i%10 == 0 {
				return 1536 * kib
			}
			return 2 * kib
		}, 2000},
		"any": {"no pattern at all", func(int) int64 { return rand.Int64N(1536 * kib) }, 500},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: budget})
				var w writeLog
				begun := time.Now()
				var walks sync.WaitGroup
				for range 2 {
					walks.Go(func() {
						if report, err := walkOver(t.Context(), l, &w, tc.size, tc.n); err != nil || report.Counts.Migrated != int64(tc.n) {
							t.Errorf("%s: %+v, %v; want all migrated", tc.reason, report, err)
						}
					})
				}
				walks.Wait()
				if most := w.most(); most > budget {
					t.Errorf("%s: %d bytes were written within five minutes, want at most %d", tc.reason, most, budget)
				}
				// The writes use each five minutes' budget except for the room
				// for a few large objects.
				windows := float64(w.total()) / (0.9 * budget)
				if took, most := time.Since(begun), time.Duration(windows*float64(5*time.Minute)); took > most {
					t.Errorf("%s: %d MiB took %v, want at most %v", tc.reason, w.total()/mib, took, most)
				}
			})
		})
	}
}

// TestByteBudgetHoldsWithASample of sizes, up to its error over half of the budget: where the bytes are those of few objects
// of 1.5 MiB, its standard deviation is sqrt(170*3)*1.5 = 34 MiB.
func TestByteBudgetHoldsWithASample(t *testing.T) {
	const (
		budget    = 512 * mib
		deviation = 34 * mib
		large     = 1536 * kib
	)
	everyFourth := func(first int) func(int) int64 {
		return func(i int) int64 {
			if i%4 == first {
				return large
			}
			return 2 * kib
		}
	}
	cases := map[string]struct {
		reason string
		size   func(i int) int64
		n      int
		error  int64
	}{
		"small":                   {"the same size everywhere: 50 KiB times sqrt(5243*3) is 6 MiB", func(int) int64 { return 50 * kib }, 45_000, 6 * mib},
		"every fourth large":      {"a pattern as long as the distance of samples", everyFourth(0), 4500, deviation},
		"every fourth large, one": {"the same one object later", everyFourth(1), 4500, deviation},
		"small, then large": {"former sizes do not predict later ones", func(i int) int64 {
			if i < 2000 {
				return kib
			}
			return large
		}, 3500, deviation},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := walk.NewLimiter(walk.Limits{})
				var w writeLog
				begun := time.Now()
				report, err := walkWith(t.Context(), l, tc.size, tc.n, func(ctx context.Context, bytes int64) error {
					return l.WriteSampled(ctx, func(ctx context.Context, measure bool) (int64, error) {
						written, err := w.send(bytes)(ctx)
						if !measure {
							written = budget // is not read
						}
						return written, err
					})
				})
				if err != nil || report.Counts.Migrated != int64(tc.n) {
					t.Errorf("%s: %+v, %v; want all migrated", tc.reason, report, err)
				}
				if most := w.most(); most > budget+6*tc.error {
					t.Errorf("%s: %d MiB were written within five minutes, want at most %d", tc.reason, most/mib, (budget+6*tc.error)/mib)
				}
				windows := float64(w.total()) / float64(budget*9/10-6*tc.error)
				if took, most := time.Since(begun), time.Duration(windows*float64(5*time.Minute)); took > most {
					t.Errorf("%s: %d MiB took %v, want at most %v", tc.reason, w.total()/mib, took, most)
				}
			})
		})
	}
}

// TestWhichWritesAreMeasured: one in four until half of the default budget is used, and every one beyond or with a smaller
// budget. Without a budget none is.
func TestWhichWritesAreMeasured(t *testing.T) {
	const writes = 10_000
	cases := map[string]struct {
		limit, booked int64
		least, most   int
	}{
		"default budget":             {0, 0, writes/4 - 300, writes/4 + 300}, // seven standard deviations
		"half of the default budget": {0, 256 * mib, writes, writes},
		"less than the default":      {walk.DefaultMaxBytesPerFiveMinutes - 1, 0, writes, writes},
		"no budget":                  {-1, 0, 0, 0},
	}
	for name, tc := range cases {
		synctest.Test(t, func(t *testing.T) {
			l := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: tc.limit})
			l.AddWritten(tc.booked)
			measured := 0
			for range writes {
				_ = l.WriteSampled(t.Context(), func(_ context.Context, measure bool) (int64, error) {
					if measure {
						measured++
					}
					return kib, nil
				})
			}
			if measured < tc.least || measured > tc.most {
				t.Errorf("%s: %d of %d writes were measured, want %d to %d", name, measured, writes, tc.least, tc.most)
			}
		})
	}
}

// TestByteBudgetBelowOneObject shows that an object larger than the budget is
// written when no other write counts.
func TestByteBudgetBelowOneObject(t *testing.T) {
	for name, limit := range map[string]int64{"a byte": 1, "half an object": 500 * kib} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: limit})
				var w writeLog
				report, err := walkOver(t.Context(), l, &w, func(int) int64 { return mib }, 60)
				if err != nil || report.Counts.Migrated != 60 {
					t.Fatalf("%+v, %v; want all migrated", report, err)
				}
				if most, want := w.most(), int64(16*mib)+limit; most > want {
					t.Errorf("%d bytes were written within five minutes, want at most the budget and one object for each of 16 workers, %d", most, want)
				}
			})
		})
	}
}

// TestStopEndsTheWaitForTheByteBudget shows that a walk that waits for room ends at
// once when it is told to, and does not count what it did not send.
func TestStopEndsTheWaitForTheByteBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: 64 * mib})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		begun := time.Now()
		var w writeLog
		report, err := walkOver(ctx, l, &w, func(int) int64 { return mib }, 200)
		if !errors.Is(err, context.Canceled) || time.Since(begun) != time.Minute {
			t.Errorf("ended after %v with %v, want after a minute with %v", time.Since(begun), err, context.Canceled)
		}
		if report.Counts.Migrated != int64(len(w.entries)) || report.Counts.Failed != 0 {
			t.Errorf("%+v, but %d objects were written", report.Counts, len(w.entries))
		}
		if waits := l.WaitsForBytes(); waits != 0 {
			t.Errorf("WaitsForBytes = %v after the walk, want 0", waits)
		}
		// The canceled writes reserve no room.
		time.Sleep(5*time.Minute + time.Second)
		begun = time.Now()
		if _, err := walkOver(t.Context(), l, &w, func(int) int64 { return mib }, 60); err != nil || time.Since(begun) > 10*time.Second {
			t.Errorf("five minutes later 60 MiB took %v, %v; want them written at once", time.Since(begun), err)
		}
	})
}

func TestWaitsForBytesReportsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: 64 * mib})
		var w writeLog
		var walking sync.WaitGroup
		walking.Go(func() { _, _ = walkOver(t.Context(), l, &w, func(int) int64 { return mib }, 100) })
		time.Sleep(15 * time.Millisecond)
		if waits := l.WaitsForBytes(); waits != 0 {
			t.Errorf("WaitsForBytes = %v while there is room, want 0", waits)
		}
		time.Sleep(2 * time.Minute)
		if waits := l.WaitsForBytes(); waits < 2*time.Minute+55*time.Second || waits > 3*time.Minute+2*time.Second {
			t.Errorf("WaitsForBytes = %v after two minutes, want about three more", waits)
		}
		walking.Wait()
	})
}

// TestWaitsForBytesIsZeroWhileAWriteIsUnderWay, because its answer may make room.
func TestWaitsForBytesIsZeroWhileAWriteIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: 64 * mib})
		l.AddWritten(62 * mib)
		var writes sync.WaitGroup
		begun := time.Now()
		for range 2 { // there is room for one, until its answer says that it took none
			writes.Go(func() {
				_ = l.Write(t.Context(), func(context.Context) (int64, error) {
					time.Sleep(time.Second)
					return 0, nil
				})
			})
		}
		time.Sleep(time.Second / 2)
		if waits := l.WaitsForBytes(); waits != 0 {
			t.Errorf("WaitsForBytes = %v while a write is under way, want 0", waits)
		}
		writes.Wait()
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("both took %v, want a second each, one after the other", took)
		}
	})
}

func TestWithoutByteBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: -1})
		if l.CountsBytes() {
			t.Error("CountsBytes is true without a budget")
		}
		begun := time.Now()
		var w writeLog
		if _, err := walkOver(t.Context(), l, &w, func(int) int64 { return mib }, 1600); err != nil {
			t.Fatal(err)
		}
		l.AddWritten(mib)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("1600 objects took %v, want 100 times 20 ms", took)
		}
	})
}

func TestByteBudgetIsOnByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := walk.NewLimiter(walk.Limits{})
		begun := time.Now()
		var w writeLog
		if _, err := walkOver(t.Context(), l, &w, func(int) int64 { return mib }, 600); err != nil {
			t.Fatal(err)
		}
		if most, took := w.most(), time.Since(begun); most > 512*mib || took < 5*time.Minute {
			t.Errorf("600 MiB took %v and %d MiB came within five minutes, want at most 512", took, most/mib)
		}
	})
}

// TestByteBudgetKeepsOneEntryPerSecond, so that a million small writes are not a
// million entries.
func TestByteBudgetKeepsOneEntryPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := walk.NewLimiter(walk.Limits{})
		for range 100_000 {
			l.AddWritten(kib)
			time.Sleep(10 * time.Millisecond)
		}
		if got := l.WindowEntries(); got > 301 {
			t.Errorf("the window has %d entries after 1000 s of writing, want at most one per second", got)
		}
	})
}

// TestByteBudgetCountsWhatWasWritten: the largest object counts for a write without
// an answer, and nothing for a write that the server refused or elided.
func TestByteBudgetCountsWhatWasWritten(t *testing.T) {
	const limit = 64 * mib
	cases := map[string]struct {
		reason string
		bytes  int64
		err    error
		booked int64
	}{
		"stored":             {"the size of the object counts", 3 * mib, nil, 3 * mib},
		"elided":             {"etcd was not written", 0, nil, 0},
		"refused":            {"an object that was denied is not stored", mib, status("403", ""), 0},
		"conflict":           {"the object is not stored", mib, status("409", ""), 0},
		"broken webhook":     {"the server calls it before it stores the object", mib, status("500", ""), 0},
		"timeout":            {"the server does not know whether the object is stored", mib, status("504", ""), 3 * mib / 2},
		"no answer":          {"it may have been stored", mib, errors.New("connection lost"), 3 * mib / 2},
		"connection refused": {"nothing was sent", mib, refused(), 0},
		"stopped":            {"nothing was sent", mib, walk.ErrStopped, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: limit})
				err := l.Write(t.Context(), func(context.Context) (int64, error) { return tc.bytes, tc.err })
				if !errors.Is(err, tc.err) {
					t.Errorf("Write returns %v, want %v", err, tc.err)
				}
				// The rest of the budget is just enough for the next write.
				l.AddWritten(limit - 3*mib/2 - tc.booked)
				if took := timeOfWrite(t, l); took != 0 {
					t.Errorf("%s: more than %d bytes were counted: the next write waits %v", tc.reason, tc.booked, took)
				}
				l.AddWritten(1)
				if took := timeOfWrite(t, l); took == 0 {
					t.Errorf("%s: less than %d bytes were counted: another write finds room", tc.reason, tc.booked)
				}
			})
		})
	}
}

// timeOfWrite returns how long a write that changes nothing waits.
func timeOfWrite(t *testing.T, l *walk.Limiter) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := l.Write(t.Context(), func(context.Context) (int64, error) { return 0, nil }); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}
