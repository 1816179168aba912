package walk

import (
	"math/rand/v2"
	"time"
)

const (
	// budgetWindow is how often kube-apiserver compacts etcd
	// (--etcd-compaction-interval).
	budgetWindow = 5 * time.Minute

	// entrySpan bounds the window to one entry per second.
	entrySpan = time.Second

	// measuredWrites is the share of writes that are measured while less than half of the
	// limit is used: one in four.
	measuredWrites = 4
)

// SizeUnknown is what a write reports that does not know how many bytes it added to etcd.
const SizeUnknown = -1

// byteWindow adds up the bytes that were written within the window. The size of a
// write is known only when its answer is there, so that each write reserves bytes
// before it is sent.
type byteWindow struct {
	limit    int64 // bytes within any window
	perWrite int64 // bytes that a write under way reserves

	reserved int64   // by all writes under way
	written  int64   // the sum of entries
	entries  []entry // oldest first
	last     int64   // the last size that was known; 0 before the first
}

// entry is what was written within one span.
type entry struct {
	end   time.Time // of the span
	bytes int64
}

// reserve makes room for one write. Where there is none, wait is the time until
// the oldest entry leaves the window; an answer that comes before may make room
// earlier.
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

// measures reports whether the write that has just reserved is to tell its size. The choice is random, since sizes of
// objects in the order of their names may have any pattern.
func (w *byteWindow) measures() bool {
	return w.last == 0 || w.written+w.reserved > w.limit/2 || rand.IntN(measuredWrites) == 0
}

// replace adds the bytes that a write took in place of what it reserved.
func (w *byteWindow) replace(now time.Time, bytes int64) {
	w.reserved -= w.perWrite
	switch {
	case bytes > 0:
		w.last = bytes
	case bytes == SizeUnknown && w.last > 0:
		bytes = w.last
	case bytes == SizeUnknown:
		bytes = w.perWrite
	}
	w.add(now, bytes)
}

// lose adds what a write without an answer reserved: it may have stored as much.
func (w *byteWindow) lose(now time.Time) {
	w.reserved -= w.perWrite
	w.add(now, w.perWrite)
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

// dropOld removes the entries that left the window. An entry stays until the
// newest byte of its span leaves.
func (w *byteWindow) dropOld(now time.Time) {
	old := 0
	for old < len(w.entries) && !now.Before(w.entries[old].end.Add(budgetWindow)) {
		w.written -= w.entries[old].bytes
		old++
	}
	w.entries = w.entries[old:]
}
