package storageversion

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// saveEvery bounds how often the cursor is saved: it spares a resumed run
	// requests, while each save is a write that every watcher of CRDs gets to see.
	saveEvery = 10 * time.Second

	// saveTimeout is for the last save of a run whose context has ended.
	saveTimeout = 5 * time.Second
)

// baseline tells which objects need no write. It never changes: workers read the one that
// was published before their page.
type baseline struct {
	stored bool   // every object is at the storage version, or the rewrite is skipped
	since  string // C; empty in a dry run
	cursor string // of the run before: keys up to it are done
}

// done reports whether an object needs no write.
func (p *baseline) done(o *metav1.PartialObjectMetadata) (bool, error) {
	switch {
	case p.stored:
		return true, nil
	case p.since == "":
		return false, nil
	case p.cursor != "" && walk.Key(o) <= p.cursor:
		return true, nil
	}
	return newer(o.ResourceVersion, p.since)
}

// newer compares two resourceVersions of one resource.
func newer(a, b string) (bool, error) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return false, fmt.Errorf("compare resourceVersions %q and %q: %w", a, b, err)
	}
	return order > 0, nil
}

// evidence is the checkpoint of a run, in memory and in the journal. The goroutine that
// feeds pages owns it; workers get the baseline that it publishes.
type evidence struct {
	crd        string
	journal    Journal
	now        func() time.Time // the API server's
	published  *atomic.Pointer[baseline]
	checkpoint Checkpoint
	journaled  bool // the journal holds something
	saved      time.Time
}

// load takes in what the run before left, as far as it holds under the policy.
func (e *evidence) load(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, p Policy) error {
	earlier, err := e.journal.Load(ctx, crd)
	if err != nil {
		return fmt.Errorf("load the checkpoint of %s: %w", e.crd, err)
	}
	e.journaled = !earlier.isZero()
	if resumed, ok := earlier.resume(crd); ok && earlier.holds(crd, p) {
		e.checkpoint = resumed
		e.published.Store(&baseline{since: resumed.ResourceVersion, cursor: resumed.Cursor})
		return nil
	}
	e.checkpoint = earlier.begin(crd, e.now())
	e.published.Store(&baseline{})
	return nil
}

// since is C, or empty before the first page.
func (e *evidence) since() string { return e.published.Load().since }

func (e *evidence) isStored() bool { return e.published.Load().stored }

// setStored makes writes needless for every object.
func (e *evidence) setStored() {
	p := *e.published.Load()
	p.stored = true
	e.published.Store(&p)
}

// listAnew drops the cursor of the run before, for a pass by another list.
func (e *evidence) listAnew() {
	p := *e.published.Load()
	p.cursor = ""
	e.published.Store(&p)
}

// begin makes the resourceVersion of the first page the evidence, and saves it before
// the first write.
func (e *evidence) begin(ctx context.Context, listed string, p Policy) error {
	e.published.Store(&baseline{since: listed})
	e.checkpoint.ResourceVersion = listed
	e.checkpoint.Settled = metav1.Duration{Duration: p.terms().Time()}
	e.checkpoint.AcceptedStaleLeases = p.AcceptStaleLeases
	return e.save(ctx)
}

// void takes the evidence back.
func (e *evidence) void() { e.checkpoint.ResourceVersion, e.checkpoint.Cursor = "", "" }

func (e *evidence) moveCursor(key string) { e.checkpoint.Cursor = max(e.checkpoint.Cursor, key) }

// saveNowAndThen saves the cursor if the last save is long ago.
func (e *evidence) saveNowAndThen(ctx context.Context) error {
	if e.now().Sub(e.saved) < saveEvery {
		return nil
	}
	return e.save(ctx)
}

func (e *evidence) save(ctx context.Context) error {
	err := request.Retry(ctx, func(ctx context.Context) error { return e.journal.Save(ctx, e.crd, e.checkpoint) })
	if err != nil {
		return err
	}
	e.journaled, e.saved = true, e.now()
	return nil
}

// saveLast saves after a pass that did not reach its end. It may fail: the CRD may be
// gone, and a lost cursor costs requests, nothing else.
func (e *evidence) saveLast(ctx context.Context, why error) {
	if errors.Is(why, ErrOutOfScope) {
		return // the user who removed the label wants nothing more to be written there
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if e.journaled || e.checkpoint.ResourceVersion != "" || len(e.checkpoint.Restarts) > 0 {
		_ = e.journal.Save(ctx, e.crd, e.checkpoint)
	}
}

// remove takes the checkpoint of a finished migration out of the journal.
func (e *evidence) remove(ctx context.Context) error {
	if !e.journaled {
		return nil
	}
	err := request.Retry(ctx, func(ctx context.Context) error { return e.journal.Save(ctx, e.crd, Checkpoint{}) })
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the checkpoint of %s: %w", e.crd, err)
	}
	e.journaled = false
	return nil
}
