package walk

import (
	"math/rand/v2"
	"time"
)

const (
	// budgetWindow is the default of kube-apiserver's --etcd-compaction-interval.
	budgetWindow = 5 * time.Minute

	// entrySpan bounds the window to one entry per second.
	entrySpan = time.Second

	// measureOneIn is how many writes a measured write counts for while sizes are sampled.
	measureOneIn = 4
)

// byteWindow sums the bytes that were written within the window. The size of a write is known only after its answer, so
// each write reserves bytes before it is sent.
type byteWindow struct {
	limit    int64 // bytes within any window
	perWrite int64 // bytes that a write under way reserves
	exact    bool  // no size is estimated

	reserved int64   // by all writes under way
	written  int64   // the sum of entries
	entries  []entry // oldest first
}

// entry has the bytes that were written within one span.
type entry struct {
	end   time.Time // of the span
	bytes int64
}

// reserve reserves room for one write. If the window has no room, wait is the time until the oldest entry leaves it; an
// earlier answer may make room sooner.
func (w *byteWindow) reserve(now time.Time) (wait time.Duration, ok bool) {
	w.dropOld(now)
	if w.written+w.reserved+w.perWrite <= w.limit {
		w.reserved += w.perWrite
		return 0, true
	}
	if len(w.entries) == 0 {
		return budgetWindow, false
	}
	return w.entries[0].end.Add(budgetWindow).Sub(now), false
}

// sampleWeight returns how many writes the next one counts for, or 0 if it is not measured. The choice is random,
// because sizes may follow a pattern in the order of names.
func (w *byteWindow) sampleWeight(sampled bool) int64 {
	switch {
	case !sampled || w.exact || w.written+w.reserved > w.limit/2:
		return 1
	case rand.IntN(measureOneIn) == 0:
		return measureOneIn
	}
	return 0
}

// replace replaces the reserved bytes of a write with its actual size.
func (w *byteWindow) replace(now time.Time, bytes int64) {
	w.reserved -= w.perWrite
	w.add(now, bytes)
}

func (w *byteWindow) add(now time.Time, bytes int64) {
	if bytes <= 0 {
		return
	}
	w.dropOld(now)
	w.written += bytes
	if last := len(w.entries) - 1; last >= 0 && now.Before(w.entries[last].end) {
		w.entries[last].bytes += bytes
		return
	}
	w.entries = append(w.entries, entry{end: now.Add(entrySpan), bytes: bytes})
}

// dropOld removes the entries that have left the window. An entry leaves with the end of its span.
func (w *byteWindow) dropOld(now time.Time) {
	old := 0
	for old < len(w.entries) && !now.Before(w.entries[old].end.Add(budgetWindow)) {
		w.written -= w.entries[old].bytes
		old++
	}
	w.entries = w.entries[old:]
}
