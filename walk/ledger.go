package walk

import "time"

const (
	// budgetWindow is how often kube-apiserver compacts etcd
	// (--etcd-compaction-interval).
	budgetWindow = 5 * time.Minute

	// expenseSpan bounds the ledger to one entry per second of the window.
	expenseSpan = time.Second
)

// ledger is what was written within the window, and what may have been. Nobody
// knows how much a write will add before its answer is there, so each takes a
// hold before it is sent.
type ledger struct {
	limit int64 // bytes within any window
	hold  int64 // bytes that a write under way stands for

	held     int64     // by writes under way
	booked   int64     // the sum of expenses
	expenses []expense // oldest first
}

// expense is what was booked within one span.
type expense struct {
	closes time.Time // end of the span
	bytes  int64
}

// take holds room for one write. Where there is none it says how long it is
// until an expense leaves the window; answers that come before may make room
// earlier.
func (l *ledger) take(now time.Time) (wait time.Duration, ok bool) {
	l.forget(now)
	if l.booked+l.held+l.hold <= l.limit {
		l.held += l.hold
		return 0, true
	}
	if len(l.expenses) == 0 {
		return budgetWindow, false
	}
	return l.expenses[0].closes.Add(budgetWindow).Sub(now), false
}

// settle books what a write really added in place of its hold.
func (l *ledger) settle(now time.Time, bytes int64) {
	l.held -= l.hold
	l.book(now, bytes)
}

func (l *ledger) book(now time.Time, bytes int64) {
	if bytes <= 0 {
		return
	}
	l.forget(now)
	l.booked += bytes
	if last := len(l.expenses) - 1; last >= 0 && now.Before(l.expenses[last].closes) {
		l.expenses[last].bytes += bytes
		return
	}
	l.expenses = append(l.expenses, expense{closes: now.Add(expenseSpan), bytes: bytes})
}

// forget drops what left the window. An expense stays until the youngest byte
// of its span may go.
func (l *ledger) forget(now time.Time) {
	gone := 0
	for gone < len(l.expenses) && !now.Before(l.expenses[gone].closes.Add(budgetWindow)) {
		l.booked -= l.expenses[gone].bytes
		gone++
	}
	l.expenses = l.expenses[gone:]
}
