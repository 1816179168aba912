package crdmigrator

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// recentFor is how long a write is remembered: Cluster API's and ToolHive's
// migrators agree on an hour.
const recentFor = time.Hour

// writtenAs is one object as a write of ours left it, under one state of its
// CRD's spec. Kind and name would not do: a kind may exist in two groups,
// and a name may be given to another object.
type writtenAs struct {
	crdGeneration
	object          types.UID
	resourceVersion string
}

func (c crdGeneration) writtenAs(o *metav1.PartialObjectMetadata) writtenAs {
	return writtenAs{crdGeneration: c, object: o.UID, resourceVersion: o.ResourceVersion}
}

// recentWrites remembers what was written, for processes that make one pass
// after the other. It spares them the objects whose write the server elided,
// which no resourceVersion proves, and all others where the checkpoint was lost.
// A nil one remembers nothing.
type recentWrites struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	until map[writtenAs]time.Time
	last  map[crdGeneration]time.Time // the last write under a spec
}

func newRecentWrites(c clock.PassiveClock) *recentWrites {
	return &recentWrites{clock: c, until: map[writtenAs]time.Time{}, last: map[crdGeneration]time.Time{}}
}

func (r *recentWrites) add(w writtenAs) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	r.until[w], r.last[w.crdGeneration] = now.Add(recentFor), now
}

// has reports whether an object is still as we left it, and if so remembers it
// until an hour after the last write of the migration: one that takes longer must
// not start over, and one that meets the same failure in each pass must not
// remember all other objects for ever.
func (r *recentWrites) has(w writtenAs) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.clock.Now().Before(r.until[w]) {
		return false
	}
	if until := r.last[w.crdGeneration].Add(recentFor); until.After(r.until[w]) {
		r.until[w] = until
	}
	return true
}

// sweep drops what is over. Deleted objects are never asked for again, so
// nothing else would.
func (r *recentWrites) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	maps.DeleteFunc(r.until, func(_ writtenAs, until time.Time) bool { return !now.Before(until) })
	maps.DeleteFunc(r.last, func(_ crdGeneration, last time.Time) bool { return now.Sub(last) >= recentFor })
}

// forget drops everything about one CRD. What is left of a migration that
// was trimmed, or of an etcd that was restored, must not be evidence for the next.
func (r *recentWrites) forget(crd types.UID) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.until, func(w writtenAs, _ time.Time) bool { return w.uid == crd })
	maps.DeleteFunc(r.last, func(c crdGeneration, _ time.Time) bool { return c.uid == crd })
}
