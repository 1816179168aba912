package crdmigrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
	"github.com/godwit-dev/godwit/internal/storageversion/recent"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// concurrentCRDs is enough for a few CRDs that wait and one or two that run.
	concurrentCRDs = 4

	defaultCacheGCInterval = 10 * time.Minute

	// selectedPageObjects is ToolHive's page: with 50 kB per object it bounds a
	// page of whole objects to 5 MB.
	selectedPageObjects = 100
)

// SetupWithManager registers the reconciler. It watches the metadata of
// CRDs and starts no other informer, but those that kinds with UseCache
// may need.
func (r *CRDMigrator) SetupWithManager(ctx context.Context, mgr manager.Manager, o controller.Options) error {
	if err := r.setup(mgr.GetScheme(), mgr.GetConfig()); err != nil {
		return fmt.Errorf("set up the migrator of customresourcedefinitions: %w", err)
	}
	if r.skips(StorageVersionMigrationPhase) && r.skips(CleanupManagedFieldsPhase) {
		log.FromContext(ctx).Info("Both phases are skipped: no customresourcedefinition is migrated", "controller", "crdmigrator")
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(r.sweep)); err != nil {
		return fmt.Errorf("set up the migrator of customresourcedefinitions: %w", err)
	}
	return builder.ControllerManagedBy(mgr).
		For(&apiextensionsv1.CustomResourceDefinition{}, builder.OnlyMetadata, builder.WithPredicates(r.inScope(), changed())).
		Named("crdmigrator").
		WithOptions(withDefaults(o)).
		Complete(r)
}

// withDefaults has several CRDs reconciled at the same time. A CRD that waits for
// API servers needs their leases read every few seconds, even while the run of another
// CRD takes long. One limiter paces all of them.
func withDefaults(o controller.Options) controller.Options {
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = concurrentCRDs
	}
	return o
}

func (r *CRDMigrator) setup(scheme *runtime.Scheme, cfg *rest.Config) error {
	switch {
	case r.Client == nil || r.APIReader == nil:
		return errors.New("both Client and APIReader must be set: mgr.GetClient() and mgr.GetAPIReader()")
	case len(r.Config) == 0 && r.Selector.isZero():
		return errors.New("one of Config and Selector must be set: there is nothing to migrate without")
	case !scheme.Recognizes(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")):
		return errors.New("the manager's scheme does not know CustomResourceDefinitions: call AddToScheme of k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1")
	}
	if wrong := validation.IsQualifiedName(r.ObservedGenerationAnnotation); r.ObservedGenerationAnnotation != "" && len(wrong) > 0 {
		return fmt.Errorf("ObservedGenerationAnnotation %q is not a valid name of an annotation: %s", r.ObservedGenerationAnnotation, strings.Join(wrong, "; "))
	}
	for _, phase := range r.SkipCRDMigrationPhases {
		if !slices.Contains(decision.Phases, phase) {
			return fmt.Errorf("no such phase: %q in SkipCRDMigrationPhases; there are %v", phase, decision.Phases)
		}
	}
	if r.Limiter == nil {
		r.Limiter = walk.NewLimiter(walk.Limits{})
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	r.recent, r.memory = recent.New(r.clock), map[string]*memory{}
	var err error
	r.scope, err = r.scopeOf(cfg, scheme)
	return err
}

// migrator adds to o what all profiles have in common.
func (r *CRDMigrator) migrator(cfg *rest.Config, o storageversion.Options) (*storageversion.Migrator, error) {
	o.Settle, o.AcceptStaleLeases, o.SettleFromSight = r.Settle, r.AcceptStaleLeases, true
	o.SkipPhases, o.Limiter = r.SkipCRDMigrationPhases, r.Limiter
	o.Preflight, o.AskEachServer = preflight.Changes, true
	o.List, o.Recent = listThrough(r.APIReader, r.Client.RESTMapper()), r.recent
	return storageversion.New(cfg, o)
}

// scopeOf makes the scope from Config and Selector. An error says what is wrong with them.
func (r *CRDMigrator) scopeOf(cfg *rest.Config, scheme *runtime.Scheme) (scope, error) {
	s := scope{byKind: map[schema.GroupKind]*profile{}, selector: r.Selector}
	for object, by := range r.Config {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return s, fmt.Errorf("find the kind of %T, which Config names: %w", object, err)
		}
		if s.byKind[kind.GroupKind()] != nil {
			return s, fmt.Errorf("find one configuration for %s: Config names it twice, by two Go types, and one would do", kind.GroupKind())
		}
		w, err := configuredWrite(cmp.Or(r.Write, WritePatch), by)
		if err != nil {
			return s, fmt.Errorf("configure %s: %w", kind.GroupKind(), err)
		}
		o := storageversion.Options{Policy: decision.Policy{Write: w, AcceptLosses: by.AcceptLosses, AcceptChanges: by.AcceptChanges}, PageObjects: r.PageSize}
		if by.UseCache {
			newList, err := listOf(scheme, kind)
			if err != nil {
				return s, fmt.Errorf("use the cache for %s: %w", kind.GroupKind(), err)
			}
			o.Candidates = cachedObjects(r.Client, newList)
		}
		m, err := r.migrator(cfg, o)
		if err != nil {
			return s, err
		}
		s.byKind[kind.GroupKind()] = &profile{
			migrator: m, observed: cmp.Or(r.ObservedGenerationAnnotation, ClusterAPIObservedGenerationAnnotation),
			alsoRead: []string{ClusterAPIObservedGenerationAnnotation, clusterAPIProposalObservedGenerationAnnotation},
		}
	}
	if r.Selector.isZero() {
		return s, nil
	}
	o := storageversion.Options{Policy: decision.Policy{Write: r.Write, AcceptLosses: r.AcceptLosses, AcceptChanges: r.AcceptChanges}, PageObjects: r.PageSize}
	if o.Write == "" {
		o.Write = WriteUpdate
	}
	if o.PageObjects == 0 {
		o.PageObjects = selectedPageObjects
	}
	o.BeforePage = s.keepSelected
	m, err := r.migrator(cfg, o)
	s.selected = &profile{migrator: m, observed: ObservedGenerationAnnotation}
	return s, err
}

// configuredWrite is the write that UseStatus makes of another one.
func configuredWrite(w Write, by ByObjectConfig) (Write, error) {
	if !by.UseStatusForStorageVersionMigration {
		return w, nil
	}
	switch w {
	case WritePatch, WriteStatusPatch:
		return WriteStatusPatch, nil
	case WriteApply, WriteStatusApply:
		return WriteStatusApply, nil
	}
	return "", fmt.Errorf("UseStatusForStorageVersionMigration does not go together with the write %s: choose %s or %s", w, WritePatch, WriteApply)
}

func listOf(scheme *runtime.Scheme, kind schema.GroupVersionKind) (func() client.ObjectList, error) {
	kind.Kind += "List"
	o, err := scheme.New(kind)
	if err != nil {
		return nil, err
	}
	list, ok := o.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", o)
	}
	return func() client.ObjectList { return list.DeepCopyObject().(client.ObjectList) }, nil
}

// sweep drops old writes from memory, until the manager stops.
func (r *CRDMigrator) sweep(ctx context.Context) error {
	interval := r.CacheGCInterval
	if interval <= 0 {
		interval = defaultCacheGCInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			r.recent.Sweep()
		}
	}
}

// inScope lets CRDs through that may be in scope, and those that have just left it, so that
// their migration ends.
func (r *CRDMigrator) inScope() predicate.Predicate {
	p := predicate.NewPredicateFuncs(func(o client.Object) bool { return r.scope.mayContain(o) })
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		return r.scope.mayContain(e.ObjectOld) || r.scope.mayContain(e.ObjectNew)
	}
	return p
}

// changed lets changes through, except resyncs and saved checkpoints: a checkpoint
// that a pass saves at its end would start the next pass at once. Metadata do not show
// a change of the status, so that any other change of the resourceVersion is let through.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
			return false
		}
		before, after := maps.Clone(e.ObjectOld.GetAnnotations()), maps.Clone(e.ObjectNew.GetAnnotations())
		if before[CheckpointAnnotation] == after[CheckpointAnnotation] {
			return true
		}
		delete(before, CheckpointAnnotation)
		delete(after, CheckpointAnnotation)
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(before, after) || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	}}
}
