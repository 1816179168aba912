package storageversion

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// Run carries a plan out: settle, rewrite, trim. It returns a true report in
// every case, and
//   - a [BlockedError] for a plan with blockers that waiting does not cure, and for a
//     run that has only managedFields to clean and lacks the permission;
//   - an [UnlistedError] when the API server does not list the objects;
//   - a [NotSettledError] while nothing may be written yet: call again;
//   - [ErrChanged] when the plan no longer fits: observe and plan again;
//   - the context's cause, after the writes under way were counted and the
//     checkpoint was saved;
//   - no error after a complete pass, also when objects failed: then the report
//     counts and names them, and nothing is trimmed.
//
// [Next] decides what follows.
//
// progress, which may be nil, is called after each object and before each wait for
// another attempt, one call at a time, and must be quick.
func (m *Migrator) Run(ctx context.Context, p Plan, progress func(Report)) (Report, error) {
	if refusals := p.HardBlockers(); len(refusals) > 0 {
		return Report{}, &BlockedError{CRD: p.Name, Blockers: refusals}
	}
	if u := p.Unlisted; u != nil && p.State == StateUnknown && u.Reason != ReasonThrottled && u.Reason != ReasonServerError {
		return Report{}, u // a pass that begins with such a list takes minutes to say the same
	}
	r := m.newRun(p.Name, progress)
	ctx = kube.CountRequests(ctx, &r.progress.requests)
	err := r.run(ctx, p)
	return r.report(), err
}

// run is one call of Run. Its fields belong to the goroutine of the caller, which also
// feeds the pages. It shares the rewriter and the progress with the workers.
type run struct {
	*Migrator
	name     string
	evidence evidence
	source   source
	rewriter *rewriter
	progress *progress

	cached  walk.Report // of the candidates
	storage walk.Report
	trimmed bool
}

func (m *Migrator) newRun(crd string, progress func(Report)) *run {
	w := m.newRewriter()
	return &run{
		Migrator: m, name: crd, rewriter: w, progress: newProgress(progress),
		evidence: evidence{crd: crd, journal: m.options.Journal, now: m.client.Clock.Now, published: &w.baseline},
		source:   source{list: m.list(), borrowed: m.options.List != nil},
	}
}

func (r *run) report() Report {
	return Report{
		Storage: r.storage, Candidates: r.cached, ManagedFields: r.rewriter.tally.report(),
		Requests: r.progress.requests.Load(), Trimmed: r.trimmed, Checkpoint: r.evidence.checkpoint,
	}
}

// run is the table of contents.
func (r *run) run(ctx context.Context, p Plan) error {
	if err := request.Retry(ctx, func(ctx context.Context) error { return r.begin(ctx, p) }); err != nil {
		return err
	}
	if r.options.DryRun {
		return r.pass(ctx, nil)
	}
	if kube.Trimmed(r.epoch().crd) || r.options.skips(StorageVersionMigrationPhase) {
		r.evidence.setStored()
		return r.cleanFields(ctx)
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.passes(ctx); err != nil {
		r.evidence.saveLast(ctx, err)
		return err
	}
	if !r.storage.Counts.Settled() || r.options.NoTrim {
		return r.evidence.save(ctx)
	}
	if err := r.recheckBeforeTrim(ctx); err != nil {
		r.evidence.saveLast(ctx, err)
		return err
	}
	// First the checkpoint goes, then the old versions: what is left of a trimmed
	// CRD must not be evidence for a later run, after a restore for example.
	if err := r.evidence.remove(ctx); err != nil {
		return err
	}
	if err := r.trim(ctx); err != nil {
		r.evidence.saveLast(ctx, err)
		return err
	}
	return nil
}

// epoch is the CRD as the run last read it.
func (r *run) epoch() *epoch { return r.rewriter.epoch.Load() }

func (r *run) setCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	r.rewriter.epoch.Store(r.epochOf(crd))
}

// begin reads the CRD anew and refuses a plan that was made for another one.
func (r *run) begin(ctx context.Context, p Plan) error {
	crd, err := r.client.CRD(ctx, r.name)
	if err != nil {
		return notFound(r.name, err)
	}
	if crd.DeletionTimestamp != nil {
		return fmt.Errorf("%w: %w", ErrChanged, &BlockedError{CRD: r.name, Blockers: checkServing(Facts{CRD: crd}, Policy{})})
	}
	if crd.UID != p.UID || crd.Generation != p.Generation {
		return fmt.Errorf("%w: %s is not what was planned for", ErrChanged, r.name)
	}
	r.setCRD(crd)
	return r.evidence.load(ctx, crd, r.options.Policy)
}

// cleanFields is a run without a rewrite: the objects are visited for their
// managedFields alone.
func (r *run) cleanFields(ctx context.Context) error {
	if !r.options.skips(CleanupManagedFieldsPhase) {
		if err := r.passOverAll(ctx); err != nil {
			return err
		}
	}
	if r.rewriter.cleanupRefused.Load() != nil {
		grant := cleanupGrant(r.epoch().gvr.GroupResource())
		return &BlockedError{CRD: r.name, Blockers: []godwit.Blocker{forbidden(kube.UserName(ctx, r.client), grant)}}
	}
	if !kube.Trimmed(r.epoch().crd) {
		return nil
	}
	return r.evidence.remove(ctx)
}

// settle returns at once where evidence says that the servers had settled.
func (r *run) settle(ctx context.Context) error {
	if r.evidence.since() != "" {
		return nil
	}
	return request.Retry(ctx, func(ctx context.Context) error { return r.settled(ctx, r.epoch().crd) })
}

// passes visits the candidates, where there are any, and then every object. The
// second alone counts: a cache may miss objects, and its transforms may have
// taken managedFields away. To it, what the first has written is Skipped.
func (r *run) passes(ctx context.Context) error {
	err := r.migrateCached(ctx)
	if err == nil {
		err = r.passOverAll(ctx)
	}
	if err == nil && r.storage.Counts.Settled() {
		return nil
	}
	// What went wrong may only show that the CRD changed.
	if changed := r.recheck(ctx); errors.Is(changed, ErrChanged) {
		return changed
	}
	return err
}

// recheckBeforeTrim asks once more whether the migration is wanted: the pass may have
// taken long since the last page.
func (r *run) recheckBeforeTrim(ctx context.Context) error {
	if r.options.BeforePage == nil {
		return nil
	}
	return request.Retry(ctx, r.recheck)
}

// recheck looks whether the CRD is still the one that the evidence is about.
func (r *run) recheck(ctx context.Context) error {
	now := r.epoch()
	m, err := r.client.CRDMetadata(ctx, r.name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s was deleted", ErrChanged, r.name)
	case err != nil:
		return fmt.Errorf("look at %s again: %w", r.name, err)
	}
	if err := now.stillThere(m); err != nil {
		return err
	}
	if r.options.BeforePage != nil {
		if err := r.options.BeforePage(ctx, m); err != nil {
			return err
		}
	}
	if m.Generation == now.key.Generation {
		return nil
	}
	crd, err := r.client.CRD(ctx, r.name)
	if err != nil {
		return notFound(r.name, err)
	}
	resumed, err := now.survives(crd, r.evidence.checkpoint, r.options.Write)
	if err != nil {
		return err
	}
	r.setCRD(crd)
	r.evidence.checkpoint = resumed
	return nil
}

// progress tells the caller of Run how far the pass is, one call at a time.
type progress struct {
	requests atomic.Int64
	listener func(Report)
	mu       sync.Mutex
	now      Report // of the pass under way
}

func newProgress(listener func(Report)) *progress { return &progress{listener: listener} }

// begin starts the report of another pass. Nothing has happened yet, so that the caller
// is not told.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Storage.Remaining = -1
}

func (p *progress) tell(update func(*Report)) {
	if p.listener == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	update(&p.now)
	p.now.Requests = p.requests.Load()
	p.listener(p.now)
}
