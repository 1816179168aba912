package rejoin

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/internal/apierror"
)

// Run brings the cluster to the target hub. It returns nil when nothing is left to do, the cause of the context when that ends, and an error
// that no repetition fixes. Another Run continues in each case.
func (r *Rejoin) Run(ctx context.Context) error {
	last, observe := Step(""), r.Ask
	for {
		f, err := observe(ctx)
		step, waits := last, ""
		if err == nil {
			observe = r.Observe
			f.Arrived = r.arrived
			if err = Check(f); err == nil {
				step = Next(f)
				waits, err = r.act(ctx, step, f)
			}
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && step == Done:
			return nil
		case err != nil && isFinal(err):
			return err
		case err != nil:
			waits = err.Error()
		}
		if r.Progress != nil {
			r.Progress(step, waits)
		}
		if waits == "" && step != last { // a step that is due again, although it was done, waits
			last = step
			continue
		}
		last = step
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(cmp.Or(r.Poll, time.Second)):
		}
	}
}

// isFinal reports whether no repetition fixes an error. A conflict is fixed: the next pass reads again.
func isFinal(err error) bool {
	var failure *cluster.Error
	switch apierror.TreatmentOf(err) {
	case apierror.Final, apierror.Confirm:
		return !apierrors.IsConflict(err)
	}
	return errors.As(err, &failure)
}
