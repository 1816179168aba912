package hub

import "time"

// renewals is the number of lease renewals that prove that a cluster is at a hub. OCM's hub itself creates the lease
// with a first renewTime, and a request in flight may renew it once more.
const renewals = 2

// LeaseWatch decides whether the lease of a cluster is fresh: whether its renewTime has changed twice since the watch
// began. It compares renewTimes only with each other, because the clocks of hubs and clusters differ. The condition
// Available proves nothing: it stays True for minutes after a cluster has left.
type LeaseWatch struct {
	uid     string
	last    time.Time
	changes int
	seen    bool
}

// Observe records the UID and the renewTime of a lease. A new UID restarts the count.
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
