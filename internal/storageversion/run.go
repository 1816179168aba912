package storageversion

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
)

// Run carries a plan out: settle, rewrite, trim. It returns a true report in
// every case, and
//   - a [decision.BlockedError] for a plan with blockers that waiting does not remove, and for a
//     run that has only managedFields to clean and lacks the permission;
//   - an [decision.UnlistedError] when the API server does not list the objects;
//   - a [decision.NotSettledError] while nothing may be written yet: call again;
//   - [decision.ErrChanged] when the plan no longer fits: observe and plan again;
//   - the context's cause, after the writes under way were counted and the
//     checkpoint was saved;
//   - no error after a complete pass, also when objects failed: then the report
//     counts and names them, and nothing is trimmed.
//
// [decision.Next] decides what follows.
//
// progress, which may be nil, is called after each object and before each wait for
// another attempt, one call at a time, and must be quick.
func (m *Migrator) Run(ctx context.Context, p decision.Plan, progress func(decision.Report)) (decision.Report, error) {
	if refusals := p.HardBlockers(); len(refusals) > 0 {
		return decision.Report{}, &decision.BlockedError{CRD: p.Name, Blockers: refusals}
	}
	if u := p.Unlisted; u != nil && p.State == decision.StateUnknown && u.Reason != decision.ReasonThrottled && u.Reason != decision.ReasonServerError {
		return decision.Report{}, u // a pass would retry the list for minutes, and then return the same error
	}
	r := m.newRun(p.Name, progress)
	ctx = kube.CountRequests(ctx, &r.progress.requests)
	err := r.run(ctx, p)
	return r.report(), err
}

// run calls the steps in their order.
func (r *run) run(ctx context.Context, p decision.Plan) error {
	if err := request.Retry(ctx, func(ctx context.Context) error { return r.begin(ctx, p) }); err != nil {
		return err
	}
	if r.options.DryRun {
		return r.pass(ctx, nil)
	}
	if kube.Trimmed(r.epoch().crd) || r.options.Skips(decision.StorageVersionMigrationPhase) {
		r.evidence.SetStored()
		return r.cleanFields(ctx)
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.passes(ctx); err != nil {
		r.saveLast(ctx, err)
		return err
	}
	if !r.storage.Counts.Settled() || r.options.NoTrim {
		return r.evidence.Save(ctx)
	}
	if err := r.recheckBeforeTrim(ctx); err != nil {
		r.saveLast(ctx, err)
		return err
	}
	// The checkpoint is removed before the old versions: a checkpoint on a trimmed CRD must
	// not become evidence for a later run, for example after a restore.
	if err := r.evidence.Remove(ctx); err != nil {
		return err
	}
	if err := r.trim(ctx); err != nil {
		r.saveLast(ctx, err)
		return err
	}
	return nil
}

// begin reads the CRD anew and refuses a plan that was made for another one.
func (r *run) begin(ctx context.Context, p decision.Plan) error {
	crd, err := r.client.CRD(ctx, r.name)
	if err != nil {
		return crdReadError(r.name, err)
	}
	if crd.DeletionTimestamp != nil {
		return fmt.Errorf("%w: %w", decision.ErrChanged, &decision.BlockedError{CRD: r.name, Blockers: []godwit.Finding{decision.BeingDeleted(crd)}})
	}
	if crd.UID != p.UID || crd.Generation != p.Generation {
		return fmt.Errorf("%w: %s is not what was planned for", decision.ErrChanged, r.name)
	}
	if kube.Trimmed(crd) && !p.Trimmed {
		return fmt.Errorf("%w: another client has trimmed status.storedVersions of %s", decision.ErrChanged, r.name)
	}
	r.setCRD(crd)
	return r.evidence.Load(ctx, crd, r.options.Terms())
}

// cleanFields is a run without a rewrite: the objects are visited for their
// managedFields alone.
func (r *run) cleanFields(ctx context.Context) error {
	if !r.options.Skips(decision.CleanupManagedFieldsPhase) {
		if err := r.passOverAll(ctx); err != nil {
			return err
		}
	}
	if r.rewriter.cleanupRefused.Load() != nil {
		grant := cleanupGrant(r.epoch().gvr.GroupResource())
		return &decision.BlockedError{CRD: r.name, Blockers: []godwit.Finding{decision.Forbidden(kube.UserName(ctx, r.client), grant)}}
	}
	if !kube.Trimmed(r.epoch().crd) {
		return nil
	}
	return r.evidence.Remove(ctx)
}

// settle returns a [decision.NotSettledError] until the servers have settled. A checkpoint is evidence
// that they have.
func (r *run) settle(ctx context.Context) error {
	if r.evidence.Since() != "" {
		return nil
	}
	return request.Retry(ctx, func(ctx context.Context) error { return r.checkSettled(ctx, r.epoch().crd) })
}

// passes visits the candidates, if there are any, and then every object. Only the second pass
// decides about the trim: a cache may miss objects, and its transforms may have removed
// managedFields. The second pass counts what the first has written as Skipped.
func (r *run) passes(ctx context.Context) error {
	err := r.migrateCached(ctx)
	if err == nil {
		err = r.passOverAll(ctx)
	}
	if err == nil && r.storage.Counts.Settled() {
		return nil
	}
	// The failure may be a consequence of a change of the CRD.
	if changed := r.recheck(ctx); errors.Is(changed, decision.ErrChanged) {
		return changed
	}
	return err
}

// saveLast saves what the run has proven, unless the CRD left the scope: the user who removed
// the label wants no further write to the CRD.
func (r *run) saveLast(ctx context.Context, why error) {
	if !errors.Is(why, decision.ErrOutOfScope) {
		r.evidence.SaveLast(ctx)
	}
}

// recheckBeforeTrim asks once more whether the CRD is in scope: much time may have passed since
// the last page.
func (r *run) recheckBeforeTrim(ctx context.Context) error {
	if r.options.BeforePage == nil {
		return nil
	}
	return request.Retry(ctx, r.recheck)
}
