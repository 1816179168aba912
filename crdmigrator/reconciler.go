package crdmigrator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Reconcile plans and runs the migration of one CRD if it needs one. It decides
// only on facts that it reads live.
func (r *CRDMigrator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.APIReader.Get(ctx, req.NamespacedName, crd); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	p := r.scope.profileOf(crd)
	switch {
	case p == nil || crd.DeletionTimestamp != nil:
		r.forget(crd.Name)
		return reconcile.Result{}, nil
	case r.isMigrated(p, crd):
		return reconcile.Result{}, nil
	}
	plan, report, err := r.migrate(ctx, p, crd)
	if err != nil && ctx.Err() != nil {
		return reconcile.Result{}, err
	}
	return r.resultOf(ctx, p, crd, pass{plan, report, err})
}

// pass is one attempt at a migration: the plan, and what its run returned.
type pass struct {
	plan   decision.Plan
	report decision.Report
	err    error
}

// isMigrated reports whether a CRD, as it was read, needs no work. The annotation alone does
// not prove it: a restore can bring old storedVersions back without a new generation.
func (r *CRDMigrator) isMigrated(p *profile, crd *apiextensionsv1.CustomResourceDefinition) bool {
	done := p.isMarked(crd) || r.memoryOf(crd.Name).clean == kube.GenerationOf(crd)
	return done && (kube.Trimmed(crd) || r.skips(StorageVersionMigrationPhase))
}

// migrate plans and runs. A run that has to wait keeps its plan.
func (r *CRDMigrator) migrate(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition) (decision.Plan, decision.Report, error) {
	m := r.memoryOf(crd.Name)
	if m.plan == nil || m.plan.UID != crd.UID || m.plan.Generation != crd.Generation {
		plan, err := p.migrator.Plan(ctx, crd.Name)
		if err != nil {
			return plan, decision.Report{}, err
		}
		if plan.ServersUnread != "" && !r.leasesUnread.Swap(true) { // logged once, since it is true of every CRD
			log.FromContext(ctx).Info("The API servers can't be told apart, so time alone decides when to write", "why", plan.ServersUnread)
		}
		m.plan = &plan
	}
	progress, stop := r.logProgress(ctx)
	report, err := p.migrator.Run(ctx, *m.plan, progress)
	stop()
	return *m.plan, report, err
}

// resultOf turns the decision of [decision.Next] about a pass into a result, events and log
// entries. It returns a failure as an error, so that the rate limiter of the operator's
// controller decides when to retry.
func (r *CRDMigrator) resultOf(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition, now pass) (reconcile.Result, error) {
	m := r.memoryOf(crd.Name)
	step := decision.Next(now.plan, now.report, now.err, m.history)
	m.history = step.History
	if step.Action != decision.ActionWait {
		m.plan = nil
	}
	if step.History.Conflicts == 0 {
		m.reported = time.Time{}
	}
	r.announceTrim(ctx, crd, now.report)
	switch {
	case step.Action == decision.ActionDone:
		return reconcile.Result{}, r.finish(ctx, p, crd, now.report)
	case step.Err != nil:
		m.logged = ""
		logFailures(ctx, 0, now.report)
		r.event(crd, corev1.EventTypeWarning, EventFailed, actionMigrate, step.Err.Error())
		return reconcile.Result{}, step.Err
	case now.err == nil:
		r.announceConflicts(ctx, crd, step, now.report)
	default:
		r.logWaiting(ctx, crd, step, now.err)
	}
	return reconcile.Result{RequeueAfter: step.After}, nil
}

// finish remembers that this generation needs no more work.
func (r *CRDMigrator) finish(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition, report decision.Report) error {
	*r.memoryOf(crd.Name) = memory{}
	if p == r.scope.selected && !wrote(report) { // without an annotation, GitOps tools see no difference
		r.memoryOf(crd.Name).clean = kube.GenerationOf(crd)
		return nil
	}
	return r.markObserved(ctx, p, crd)
}

// wrote reports whether a complete pass has changed anything that lasts.
func wrote(report decision.Report) bool {
	return report.Trimmed || report.ManagedFields.Counts.Migrated > 0
}

// markObserved annotates the CRD with the generation that needs no more work. If
// the CRD changed since, its generation differs, and the next reconcile handles it.
func (r *CRDMigrator) markObserved(ctx context.Context, p *profile, crd *apiextensionsv1.CustomResourceDefinition) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": crd.UID, "annotations": map[string]string{p.observed: strconv.FormatInt(crd.Generation, 10)},
	}})
	if err != nil {
		return err
	}
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	o.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err = r.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldManager))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted, or created again: that event starts another reconcile
	}
	if err != nil {
		return fmt.Errorf("annotate %s with %s: %w", crd.Name, p.observed, err)
	}
	return nil
}
