package evidence

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// saveEvery bounds how often the cursor is saved. A newer cursor spares a resumed
	// run requests, but every watcher of CRDs gets an event for each save.
	saveEvery = 10 * time.Second

	// saveTimeout is for the last save of a run whose context has ended.
	saveTimeout = 5 * time.Second
)

// Baseline says which objects need no write. It never changes: workers read the baseline that
// was published before their page.
type Baseline struct {
	Stored bool   // every object is at the storage version, or the rewrite is skipped
	Since  string // the resourceVersion of the checkpoint; empty in a dry run
	Cursor string // of the earlier run: keys up to it are done
}

// Done reports whether an object needs no write.
func (p *Baseline) Done(o *metav1.PartialObjectMetadata) (bool, error) {
	switch {
	case p.Stored:
		return true, nil
	case p.Since != "" && p.Cursor != "" && walk.Key(o) <= p.Cursor:
		return true, nil
	}
	return p.Fresh(o.ResourceVersion)
}

// Fresh reports whether a resourceVersion is of a write after Since. It is false without Since.
func (p *Baseline) Fresh(resourceVersion string) (bool, error) {
	if p.Since == "" {
		return false, nil
	}
	return Newer(resourceVersion, p.Since)
}

// Run is the checkpoint of one run, in memory and in the journal. The goroutine that
// feeds pages owns it; workers get the baseline that it publishes.
type Run struct {
	crd        string
	journal    Journal
	now        func() time.Time // the API server's
	published  *atomic.Pointer[Baseline]
	checkpoint Checkpoint
	journaled  bool // the journal holds something
	saved      time.Time
}

// NewRun returns the evidence of a run over a CRD, and publishes baselines for its workers.
func NewRun(crd string, j Journal, now func() time.Time, published *atomic.Pointer[Baseline]) Run {
	return Run{crd: crd, journal: j, now: now, published: published}
}

// Load reads the checkpoint of the earlier run, and resumes it if it holds under these terms.
func (e *Run) Load(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, terms settle.Terms) error {
	earlier, err := e.journal.Load(ctx, crd)
	if err != nil {
		return fmt.Errorf("load the checkpoint of %s: %w", e.crd, err)
	}
	e.journaled = !earlier.IsZero()
	if resumed, ok := earlier.Resume(crd); ok && earlier.Holds(crd, terms) {
		e.checkpoint = resumed
		e.published.Store(&Baseline{Since: resumed.ResourceVersion, Cursor: resumed.Cursor})
		return nil
	}
	e.checkpoint = earlier.Begin(crd, e.now())
	e.published.Store(&Baseline{})
	return nil
}

// Checkpoint is what the journal holds, or will at the next save.
func (e *Run) Checkpoint() Checkpoint { return e.checkpoint }

// Resume replaces the checkpoint by the one that holds after a change of the CRD.
func (e *Run) Resume(c Checkpoint) { e.checkpoint = c }

// DropCursor makes a later run visit every object again.
func (e *Run) DropCursor() { e.checkpoint.Cursor = "" }

// Since is the resourceVersion of the checkpoint; empty before the first page.
func (e *Run) Since() string { return e.published.Load().Since }

// IsStored reports whether writes are needless for every object.
func (e *Run) IsStored() bool { return e.published.Load().Stored }

// SetStored makes writes needless for every object.
func (e *Run) SetStored() {
	p := *e.published.Load()
	p.Stored = true
	e.published.Store(&p)
}

// ListAnew drops the cursor of the earlier run from the baseline, for a pass over another list.
func (e *Run) ListAnew() {
	p := *e.published.Load()
	p.Cursor = ""
	e.published.Store(&p)
}

// Begin makes the resourceVersion of the first page the evidence, and saves it before
// the first write.
func (e *Run) Begin(ctx context.Context, listed string, terms settle.Terms) error {
	e.published.Store(&Baseline{Since: listed})
	e.checkpoint.ResourceVersion = listed
	e.checkpoint.Settled = metav1.Duration{Duration: terms.Time()}
	e.checkpoint.AcceptedStaleLeases = terms.AcceptStaleLeases
	return e.Save(ctx)
}

// Prove adds a proof to the checkpoint. The next save stores it.
func (e *Run) Prove(p Proof) { e.checkpoint.Proof = &p }

// Proven reports whether the checkpoint has a proof for a generation of the CRD, under the user's consent.
func (e *Run) Proven(generation int64, accepted []string) bool {
	return e.checkpoint.Proof.Holds(generation, accepted)
}

// short is the checkpoint as the journal stores it.
func (e *Run) short() Checkpoint {
	c := e.checkpoint
	c.Proof = c.Proof.short()
	return c
}

// Void drops the resourceVersion and the cursor, which prove nothing any more.
func (e *Run) Void() { e.checkpoint.ResourceVersion, e.checkpoint.Cursor = "", "" }

// AdvanceCursor moves the cursor forward.
func (e *Run) AdvanceCursor(key string) { e.checkpoint.Cursor = max(e.checkpoint.Cursor, key) }

// SaveNowAndThen saves the cursor if the last save is long ago.
func (e *Run) SaveNowAndThen(ctx context.Context) error {
	if e.now().Sub(e.saved) < saveEvery {
		return nil
	}
	return e.Save(ctx)
}

// Save writes the checkpoint to the journal.
func (e *Run) Save(ctx context.Context) error {
	err := request.Retry(ctx, func(ctx context.Context) error { return e.journal.Save(ctx, e.crd, e.short()) })
	if err != nil {
		return err
	}
	e.journaled, e.saved = true, e.now()
	return nil
}

// SaveLast saves after a pass that did not reach its end. It may fail: the CRD may be
// gone, and a lost cursor costs requests, nothing else.
func (e *Run) SaveLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if e.journaled || e.checkpoint.ResourceVersion != "" || len(e.checkpoint.Restarts) > 0 {
		_ = e.journal.Save(ctx, e.crd, e.short())
	}
}

// Remove takes the checkpoint of a finished migration out of the journal.
func (e *Run) Remove(ctx context.Context) error {
	if !e.journaled {
		return nil
	}
	none := Checkpoint{CRDUID: e.checkpoint.CRDUID}
	err := request.Retry(ctx, func(ctx context.Context) error { return e.journal.Save(ctx, e.crd, none) })
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the checkpoint of %s: %w", e.crd, err)
	}
	e.journaled = false
	return nil
}
