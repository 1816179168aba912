package hub

import "time"

// renewals that prove that a cluster is at a hub. OCM's hub creates the lease itself, with
// the time of its creation, and a message under way may renew it once more.
const renewals = 2

// LeaseWatch decides whether the lease of a cluster is fresh: whether two changed
// renewTimes were seen since the watch began. It compares renewTimes with one another and
// with no clock, since those of hubs and clusters differ. A condition Available of a
// cluster that has left stays True for minutes, and is no proof.
type LeaseWatch struct {
	uid     string
	last    time.Time
	changes int
	seen    bool
}

// Observe takes the lease as the hub has it. A lease that was created anew counts from the
// start.
func (w *LeaseWatch) Observe(uid string, renewed time.Time) {
	switch {
	case !w.seen || uid != w.uid:
		*w = LeaseWatch{uid: uid, last: renewed, seen: true}
	case !renewed.Equal(w.last):
		w.last = renewed
		w.changes++
	}
}

// Fresh reports whether the cluster has renewed the lease often enough.
func (w *LeaseWatch) Fresh() bool { return w.changes >= renewals }
