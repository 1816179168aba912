package crdmigration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
)

var (
	errSuspended   = errors.New("suspended")
	errSpecChanged = errors.New("the spec of the crdmigration changed, or it was deleted")
	errLeftScope   = errors.New("the definition left the manager's scope")
)

// pageObjects is a fifth of what a command reads at once: a suspended migration stops
// before its next page, which at the default rate is two seconds away, and a small
// page holds up nobody else's request. It costs one request in a hundred objects.
const pageObjects = 100

// work is what the manager remembers of one CRDMigration while it runs. Losing it
// costs requests: the checkpoint is in the status.
type work struct {
	*Reconciler
	name       string
	uid        types.UID
	generation int64
	spec       v1alpha1.CRDMigrationSpec // with the defaults
	migrator   *crdmigrator.Migrator
	status     *status

	plan     *crdmigrator.Plan // of a run that waits for servers to settle
	history  crdmigrator.History
	reported time.Time // when a lack of convergence was last announced
}

func (w *work) newMigrator() (*crdmigrator.Migrator, error) {
	o := options(w.spec)
	o.Journal = journal{work: w, reader: w.Reader}
	o.BeforePage = w.wanted
	o.PageObjects = pageObjects
	o.Limiter = w.Limiter.Narrow(ownLimits(w.spec)) // also without bounds of its own: its objects' webhook may be away
	m, err := crdmigrator.New(w.Config, o)
	if err != nil {
		return nil, fmt.Errorf("make a migrator for crdmigration %s: %w", w.name, err)
	}
	return m, nil
}

func ownLimits(spec v1alpha1.CRDMigrationSpec) walk.Limits {
	var l walk.Limits
	if spec.MaxInFlight != nil {
		l.MaxInFlight = int(*spec.MaxInFlight)
	}
	if spec.MaxWritesPerSecond != nil {
		l.MaxWritesPerSecond = float64(*spec.MaxWritesPerSecond)
	}
	return l
}

// wanted looks before each page whether the migration is still asked for.
func (w *work) wanted(ctx context.Context, crd *metav1.PartialObjectMetadata) error {
	m := &v1alpha1.CRDMigration{}
	err := w.Client.Get(ctx, client.ObjectKey{Name: w.name}, m)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("look at crdmigration %s: %w", w.name, err)
	case err != nil || m.UID != w.uid || m.DeletionTimestamp != nil:
		return errSpecChanged
	case m.Spec.Suspend:
		return errSuspended
	case m.Generation > w.generation:
		return errSpecChanged
	case w.Maker.Made(m) && !w.InScope(crd):
		return errLeftScope
	}
	return nil
}

// advance makes one pass and says what it amounts to, and when to look again. What
// it did is noted for whoever writes the verdict down.
func (w *work) advance(ctx context.Context, m *v1alpha1.CRDMigration) (verdict, time.Duration) {
	if m.Spec.Suspend {
		return suspended(), 0
	}
	if w.plan == nil {
		plan, err := PlanFor(ctx, w.migrator, w.name)
		if err != nil {
			return w.next(plan, crdmigrator.Report{}, err)
		}
		if w.done(m, plan) {
			return w.next(plan, crdmigrator.Report{}, nil)
		}
		w.plan = &plan
	}
	plan := *w.plan
	w.status.note(func(m *v1alpha1.CRDMigration) { describe(m, plan) })
	began := time.Now()
	progress, stop := w.status.follow(ctx, began)
	report, err := w.migrator.Run(ctx, plan, w.Metrics.of(w.name, progress))
	stop()
	v, pause := w.next(plan, report, err)
	if w.plan == nil {
		ended := time.Now()
		w.status.note(func(m *v1alpha1.CRDMigration) {
			record(m, report, began, ended)
			complete(m, report, v, ended)
		})
	}
	return v, pause
}

// PlanFor is a plan of m's, made with the patience of a process that stays: a server
// that is away, or asks to come later, is no failure.
func PlanFor(ctx context.Context, m *crdmigrator.Migrator, crd string) (plan crdmigrator.Plan, err error) {
	err = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		plan, err = m.Plan(ctx, crd)
		return err
	})
	return plan, err
}

// done: the definition is as the last pass left it, and that pass left nothing.
// Every trim is an event, and would call for another pass otherwise. That pass saw
// the objects, so that a list which fails now takes nothing back.
func (w *work) done(m *v1alpha1.CRDMigration, p crdmigrator.Plan) bool {
	clean := p.State == crdmigrator.Clean || p.State == crdmigrator.StateUnknown && p.Trimmed
	return (clean || !trims(w.spec)) && m.Status.CompletionTime != nil &&
		m.Status.CRDUID == p.UID && m.Status.CRDGeneration == p.Generation && m.Status.ObservedGeneration == m.Generation
}

// describe writes down what a plan says about the definition. Another definition,
// or another state of it, begins a new story. What was Ready is so no longer, or
// whoever waits for it would go on before the work is done; nor is it complete, or
// a pass for another spec that is killed would be taken for done.
func describe(m *v1alpha1.CRDMigration, p crdmigrator.Plan) {
	s := &m.Status
	if s.CRDUID != p.UID || s.CRDGeneration != p.Generation {
		*s = v1alpha1.CRDMigrationStatus{Conditions: s.Conditions, Checkpoint: s.Checkpoint, ObservedGeneration: s.ObservedGeneration}
	}
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) {
		migrating().apply(m)
	}
	s.CompletionTime = nil
	s.CRDUID, s.CRDGeneration = p.UID, p.Generation
	s.StorageVersion, s.StoredVersions = p.StorageVersion, p.StoredVersions
}

// complete writes down an end.
func complete(m *v1alpha1.CRDMigration, report crdmigrator.Report, v verdict, now time.Time) {
	if report.Trimmed {
		m.Status.StoredVersions = []string{m.Status.StorageVersion}
	}
	if !v.ready {
		m.Status.CompletionTime = nil // another manager's, by mistake
		return
	}
	m.Status.EstimatedCompletion = nil
	m.Status.CompletionTime = &metav1.Time{Time: now.Truncate(time.Second)}
}

// next renders what crdmigrator decides about a pass: the verdict, and when to look
// again. The plan is kept as long as nothing may be written.
func (w *work) next(plan crdmigrator.Plan, report crdmigrator.Report, err error) (verdict, time.Duration) {
	switch {
	case errors.Is(err, errSuspended):
		w.plan = nil
		return suspended(), 0
	case errors.Is(err, errSpecChanged), errors.Is(err, errLeftScope):
		w.plan = nil
		return verdict{working: true, reason: v1alpha1.ReasonRetrying, message: err.Error()}, afterWithdrawal
	}
	step := crdmigrator.Next(plan, report, err, w.history)
	w.history = step.History
	if step.Action != crdmigrator.ActionWait {
		w.plan = nil
	}
	return verdictOf(step), step.After
}

// afterWithdrawal gives the watch time to bring what became of the CRDMigration: its
// new spec, or its end.
const afterWithdrawal = time.Second
