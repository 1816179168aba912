package rescue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-dev/godwit/internal/kube"
)

// ErrNoRescue means that no rescue of the CRD is under way, so that there is nothing to undo.
var ErrNoRescue = errors.New("no rescue is under way")

// Run carries a plan out, and resumes an interrupted run. It returns a true report in every case, and
//   - a [BlockedError] if the rescue is refused. If a rewrite would lose fields, or if objects stay unreadable, Run restores
//     the CRD first;
//   - [ErrIncomplete] if the API server did not write every object. Run it again, or undo it;
//   - the context's cause. Run it again, or undo it.
func (r *Rescuer) Run(ctx context.Context, p Plan) (Report, error) {
	switch {
	case p.State == Healthy:
		return Report{}, nil
	case len(p.Blockers) > 0:
		return Report{}, &BlockedError{Blocker: p.Blockers[0], Begun: p.Resumes}
	}
	run := &run{Rescuer: r, plan: p}
	err := run.run(ctx)
	return run.report, err
}

// run calls the steps in their order.
func (r *run) run(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	if !r.journal.Restored {
		for _, step := range []func(context.Context) error{r.begin, r.readAll, r.compare, r.rewrite, r.restore} {
			if err := step(ctx); err != nil {
				return r.refuse(ctx, err)
			}
		}
	}
	if err := r.verify(ctx); err != nil {
		return err
	}
	return r.finish(ctx)
}

// refuse restores the CRD if the rescue is refused before any object was written.
func (r *run) refuse(ctx context.Context, err error) error {
	var refused *BlockedError
	if !errors.As(err, &refused) || refused.Begun || refused.Blocker.Reason == ReasonReverted {
		return err
	}
	if undone := r.undo(ctx); undone != nil {
		refused.Begun = true
		return errors.Join(err, undone)
	}
	return err
}

// Undo restores a CRD as it was before its rescue. Objects that were not rewritten become unreadable again. It returns
// [ErrNoRescue] if no rescue is under way.
func (r *Rescuer) Undo(ctx context.Context, name string) (Report, error) {
	_, j, err := r.read(ctx, name)
	switch {
	case err != nil:
		return Report{}, err
	case j.IsZero():
		return Report{}, fmt.Errorf("%w: %s", ErrNoRescue, name)
	}
	run := &run{Rescuer: r, plan: Plan{Name: name}}
	err = run.undo(ctx)
	return run.report, err
}

// undo restores the CRD. The API server refuses a spec that lacks a stored version, and every later write of such a CRD. undo
// therefore removes the missing versions from status.storedVersions first, and puts them back last.
func (r *run) undo(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	before := r.journal.StoredVersions
	spec := *r.crd.Spec.DeepCopy()
	r.journal.restore(&spec)
	allowed := slices.DeleteFunc(slices.Clone(before), func(v string) bool { return versionIndex(spec, v) < 0 })
	if storage := kube.StorageVersion(r.crd); !slices.Contains(allowed, storage) {
		allowed = append(allowed, storage)
	}
	if !r.journal.Restored {
		if err := r.setStored(ctx, allowed); err != nil {
			return err
		}
		if err := r.restore(ctx); err != nil {
			return err
		}
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	if slices.Equal(before, allowed) || r.journal.Restored {
		return nil
	}
	return r.setStored(ctx, before)
}
