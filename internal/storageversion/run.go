package storageversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// Run carries a plan out: settle, rewrite, trim. It returns a true report in
// every case, and
//   - a [decision.BlockedError] for a plan with blockers that waiting does not remove, for a run
//     that meets another migrator before its first write, and for one that has only managedFields
//     to clean and lacks the permission;
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
		if err := r.proveValues(ctx, false); err != nil {
			return err
		}
		return r.pass(ctx, nil)
	}
	if kube.Trimmed(r.epoch().crd) || r.options.Skips(decision.StorageVersionMigrationPhase) {
		r.evidence.SetStored()
		return r.cleanFields(ctx)
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.proveValues(ctx, true); err != nil {
		return err
	}
	if err := r.checkOthers(ctx); err != nil {
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
	if err := r.removeCheckpoint(ctx); err != nil {
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
	if !slices.Equal(crd.Status.StoredVersions, p.StoredVersions) || kube.Trimmed(crd) != p.Trimmed {
		return fmt.Errorf("%w: another client has changed status.storedVersions of %s from %s to %s", decision.ErrChanged, r.name,
			strings.Join(p.StoredVersions, ", "), strings.Join(crd.Status.StoredVersions, ", "))
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
	return r.removeCheckpoint(ctx)
}

// removeCheckpoint returns [decision.ErrChanged] if the API server refuses the write since the CRD was created again.
func (r *run) removeCheckpoint(ctx context.Context) error {
	err := r.evidence.Remove(ctx)
	if err == nil {
		return nil
	}
	if changed := r.recheck(ctx); errors.Is(changed, decision.ErrChanged) {
		return changed
	}
	return err
}

// proveValues proves that the rewrite keeps each value of the objects, before the first write. It returns a
// [decision.BlockedError] if it does not, unless the user gives the values up. It sends no request if the schemas prove it.
func (r *run) proveValues(ctx context.Context, settled bool) error {
	crd, accepted := r.epoch().crd, r.options.AcceptLosses
	if kube.Trimmed(crd) || r.options.InRescue || r.options.Skips(decision.StorageVersionMigrationPhase) || r.evidence.Since() != "" && r.evidence.Proven(crd.Generation, accepted) {
		return nil
	}
	f := decision.Facts{CRD: crd}
	if len(values.Unproven(crd)) > 0 {
		var err error
		if f.Objects, err = r.countNow(ctx, crd); err == nil { // anew: a server that was late may have stored objects since the plan
			f.RoundTrips, err = r.RoundTrips(ctx, crd, settled, r.progress.tried)
		}
		if err != nil && (ctx.Err() != nil || !values.Covers(accepted, values.EveryPath)) {
			return err
		}
	}
	if blockers := decision.CheckValues(f, r.options.Policy); len(blockers) > 0 {
		return &decision.BlockedError{CRD: r.name, Blockers: blockers}
	}
	r.evidence.Prove(decision.ProofOf(f))
	return nil
}

// countNow counts the objects. An answer that says why they can't be listed is a [decision.UnlistedError].
func (r *run) countNow(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (*int64, error) {
	n, err := r.count(ctx, crd)
	var answered apierrors.APIStatus
	if ctx.Err() == nil && (errors.As(err, &answered) || errors.Is(err, quicklist.ErrOver)) {
		return nil, r.unlisted(ctx, crd, err)
	}
	return n, err
}

// checkOthers looks for other migrators directly before the first write: one may have begun since the plan, while the servers settled.
// It returns the [decision.BlockedError] of a plan that has them.
func (r *run) checkOthers(ctx context.Context) error {
	var others otherMigrations
	err := request.Retry(ctx, func(ctx context.Context) (err error) {
		others, err = r.otherMigrations(ctx)
		return err
	})
	if err != nil {
		return err
	}
	f := decision.Facts{CRD: r.epoch().crd, Now: r.client.Clock.Now()}
	others.addTo(&f)
	if blockers := decision.CheckOthers(f, r.options.Policy); len(blockers) > 0 {
		return &decision.BlockedError{CRD: r.name, Blockers: blockers}
	}
	return nil
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

// recheckBeforeTrim asks once more whether the CRD is in scope and which server answers: much time may have passed since the last
// page. If no object had to be rewritten, a server that writes the old version may have answered, so that it asks several times:
// a load balancer may choose another server for each request.
func (r *run) recheckBeforeTrim(ctx context.Context) error {
	asks := 1
	if r.storage.Counts.Migrated == 0 && r.storage.Counts.Unchanged > 0 {
		asks = unchangedAsks
	}
	for range asks {
		if err := request.Retry(ctx, r.recheck); err != nil {
			return err
		}
	}
	return r.voidIfLate(r.checkEachServer(ctx, r.epoch().crd))
}

// unchangedAsks finds one late server of three with a probability of 98 %.
const unchangedAsks = 10
