// Package recent remembers which objects a process has written, for processes that make one
// pass after the other.
package recent

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/kube"
)

// Kept is how long a write is remembered: Cluster API's and ToolHive's
// migrators agree on an hour.
const Kept = time.Hour

// Write is one object as a write of this process left it, at one generation
// of its CRD. Kind and name do not identify it: two groups may have the kind,
// and another object may get the name.
type Write struct {
	CRD             kube.Generation
	Object          types.UID
	ResourceVersion string
}

// Of returns the write whose answer is o.
func Of(crd kube.Generation, o *metav1.PartialObjectMetadata) Write {
	return Write{CRD: crd, Object: o.UID, ResourceVersion: o.ResourceVersion}
}

// Writes remembers what was written, for processes that make one pass
// after the other. It spares them two kinds of writes: those that the server
// elided, which no resourceVersion proves, and all others if the checkpoint was
// lost. A nil Writes remembers nothing.
type Writes struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	until map[Write]time.Time
	last  map[kube.Generation]time.Time // the last write under a spec
}

// New returns an empty memory.
func New(c clock.PassiveClock) *Writes {
	return &Writes{clock: c, until: map[Write]time.Time{}, last: map[kube.Generation]time.Time{}}
}

// Add remembers a write.
func (r *Writes) Add(w Write) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	r.until[w], r.last[w.CRD] = now.Add(Kept), now
}

// Has reports whether an object is still as this process left it. If so, it
// remembers the object until [Kept] after the last write of the migration: a
// migration that takes longer must not start from the beginning, and a migration
// that fails at the same object in each pass must not remember the others for ever.
func (r *Writes) Has(w Write) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.clock.Now().Before(r.until[w]) {
		return false
	}
	if until := r.last[w.CRD].Add(Kept); until.After(r.until[w]) {
		r.until[w] = until
	}
	return true
}

// Len is how many writes are remembered.
func (r *Writes) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.until)
}

// Sweep drops what was kept long enough. Only Sweep drops deleted objects, since
// no pass asks for them again.
func (r *Writes) Sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	maps.DeleteFunc(r.until, func(_ Write, until time.Time) bool { return !now.Before(until) })
	maps.DeleteFunc(r.last, func(_ kube.Generation, last time.Time) bool { return now.Sub(last) >= Kept })
}

// Forget drops everything about one CRD. After a trim, or a restore of etcd,
// earlier writes must not be evidence for the next migration.
func (r *Writes) Forget(crd types.UID) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.until, func(w Write, _ time.Time) bool { return w.CRD.UID == crd })
	maps.DeleteFunc(r.last, func(c kube.Generation, _ time.Time) bool { return c.UID == crd })
}
