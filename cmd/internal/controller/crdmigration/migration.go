package crdmigration

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

var (
	errSuspended   = errors.New("the CRDMigration is suspended")
	errSpecChanged = errors.New("the spec of the CRDMigration changed, or a user deleted it")
	errLeftScope   = errors.New("the CRD left the scope of the manager")
)

func (r *Reconciler) newMigration(m *v1alpha1.CRDMigration) (*migration, error) {
	w := &migration{Reconciler: r, name: m.Name, uid: m.UID, generation: m.Generation, spec: withDefaults(m.Spec, r.Defaults)}
	o, own := options(w.spec), limits(w.spec)
	o.Journal = journal{migration: w, reader: r.Reader}
	o.BeforePage = w.checkWanted
	o.PageObjects = pageObjects(r.MaxWritesPerSecond, own)
	o.Limiter = r.Limiter.Narrow(own) // also without limits of its own: the webhook of its objects may not answer
	var err error
	if w.migrator, err = storageversion.New(r.Config, o); err != nil {
		return nil, fmt.Errorf("make a migrator for crdmigration %s: %w", m.Name, err)
	}
	return w, nil
}

// isFor reports whether the migration is that of the current CRDMigration.
func (w *migration) isFor(m *v1alpha1.CRDMigration) bool {
	return w != nil && w.uid == m.UID && w.generation == m.Generation
}

// checkWanted checks before each page that neither the user nor the configuration has withdrawn the migration.
func (w *migration) checkWanted(ctx context.Context, crd *metav1.PartialObjectMetadata) error {
	m := &v1alpha1.CRDMigration{}
	err := w.Client.Get(ctx, client.ObjectKey{Name: w.name}, m)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read crdmigration %s: %w", w.name, err)
	case err != nil || m.UID != w.uid || m.DeletionTimestamp != nil:
		return errSpecChanged
	case m.Spec.Suspend:
		return errSuspended
	case m.Generation > w.generation:
		return errSpecChanged
	case w.Instance.Created(m) && !w.InScope(crd):
		return errLeftScope
	}
	return nil
}

// advance makes one pass. It returns the outcome of the pass and the time until the next one. The next write of the
// status includes the progress of the pass.
func (w *migration) advance(ctx context.Context, m *v1alpha1.CRDMigration) (outcome, time.Duration) {
	if m.Spec.Suspend {
		return suspended(), 0
	}
	if w.plan == nil {
		plan, err := PlanFor(ctx, w.migrator, w.name)
		if err != nil || w.isUnchanged(m, plan) {
			return w.next(plan, decision.Report{}, err)
		}
		w.plan = &plan
	}
	plan, began := *w.plan, time.Now()
	w.status.Note(func(m *v1alpha1.CRDMigration) { describe(m, plan) })
	report, err := w.run(ctx, plan, began)
	o, after := w.next(plan, report, err)
	if w.plan == nil {
		ended := time.Now()
		w.status.Note(func(m *v1alpha1.CRDMigration) {
			record(m, report, began, ended)
			complete(m, report, o, ended)
		})
	}
	return o, after
}

// run writes progress into the status while the migrator runs.
func (w *migration) run(ctx context.Context, plan decision.Plan, began time.Time) (decision.Report, error) {
	progress, stop := w.status.Follow(ctx, &w.pace)
	defer stop()
	return w.migrator.Run(ctx, plan, w.Metrics.countReports(w.name, func(r decision.Report) {
		progress(func(m *v1alpha1.CRDMigration) {
			record(m, r, began, time.Now())
			migrating().apply(m)
		})
	}))
}

// PlanFor plans for one CRD. It retries while the API server does not answer or throttles.
func PlanFor(ctx context.Context, m *storageversion.Migrator, crd string) (plan decision.Plan, err error) {
	err = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		plan, err = m.Plan(ctx, crd)
		return err
	})
	return plan, err
}

// isUnchanged reports whether the CRD has not changed since the last complete pass. Every trim is an event of the CRD,
// and would start another pass. The complete pass has read every object, so a failing list now changes nothing.
func (w *migration) isUnchanged(m *v1alpha1.CRDMigration, p decision.Plan) bool {
	clean := p.State == decision.Clean || p.State == decision.StateUnknown && p.Trimmed
	return (clean || !trimsStoredVersions(w.spec)) && m.Status.CompletionTime != nil &&
		m.Status.CRDUID == p.UID && m.Status.CRDGeneration == p.Generation && m.Status.ObservedGeneration == m.Generation
}

// next returns the outcome of a pass as storageversion decides it, and the time until the next pass. It keeps the plan
// while the API servers settle.
func (w *migration) next(plan decision.Plan, report decision.Report, err error) (outcome, time.Duration) {
	switch {
	case errors.Is(err, errSuspended):
		w.plan = nil
		return suspended(), 0
	case errors.Is(err, errSpecChanged), errors.Is(err, errLeftScope):
		w.plan = nil
		return withdrawn(err), afterWithdrawal
	}
	step := decision.Next(plan, report, err, w.history)
	w.history = step.History
	if step.Action != decision.ActionWait {
		w.plan = nil
	}
	return outcomeOf(step), step.After
}

// afterWithdrawal gives the watch time to deliver the new spec of the CRDMigration, or its deletion.
const afterWithdrawal = time.Second
