package crdmigrator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

const (
	// AutoMigrateLabel with the value AutoMigrateValue on a CRD requests
	// its migration, unless the [Selector] has a LabelSelector.
	AutoMigrateLabel = "godwit.dev/auto-migrate-storage-version"
	// AutoMigrateValue is the value of the label. A CRD with any other value,
	// or without the label, is not migrated.
	AutoMigrateValue = "true"

	// ClusterAPIObservedGenerationAnnotation is the annotation in which Cluster API's
	// migrator, v1.10 to v1.14, stores the generation of a CRD that needs no more work.
	// A [CRDMigrator] uses it for CRDs of Config, unless it sets
	// ObservedGenerationAnnotation.
	ClusterAPIObservedGenerationAnnotation = "crd-migration.cluster.x-k8s.io/observed-generation"
	// clusterAPIProposalObservedGenerationAnnotation is the name in Cluster API's
	// proposal. No release writes it; it is read as well.
	clusterAPIProposalObservedGenerationAnnotation = "cluster.x-k8s.io/crd-migration-observed-generation"
	// ObservedGenerationAnnotation is the annotation for CRDs that a Selector
	// chose. A CRD that needed no write does not get it.
	ObservedGenerationAnnotation = "godwit.dev/observed-generation"
)

// ByObjectConfig says how the objects of one kind are migrated.
type ByObjectConfig struct {
	// UseCache rewrites the objects in the cache of Client first, read by the Go
	// type that Config names. Set it only if the operator has an informer for
	// that type already; otherwise UseCache starts one. In any case, all objects
	// are listed live afterwards, since a cache may lag behind.
	UseCache bool
	// UseStatusForStorageVersionMigration sends the write to /status, which
	// webhooks of the objects themselves are usually not called for. The
	// storage version must have the status subresource.
	UseStatusForStorageVersionMigration bool
	// AcceptLosses are the paths of values that the migration may drop, as in spec.retentionDays:
	// each with all below it. "." is every path. A migration that would drop other values does not
	// start: an event and the log name the paths and objects. Values that are dropped are logged,
	// with a warning event.
	AcceptLosses []string
	// AcceptChanges are the paths that admission may change while the migration writes the objects
	// as they are, as in metadata.labels: each with all below it. "." is every path, for an operator
	// whose own webhook defaults fields. A migration that finds other changes does not start: an event
	// and the log name the paths and objects.
	AcceptChanges []string
}

// Selector chooses CRDs by their API group and by their labels. Its zero value chooses none.
type Selector struct {
	// Group is the API group; empty means any.
	Group string
	// LabelSelector matches labels of the CRD; nil means AutoMigrateLabel
	// with AutoMigrateValue.
	LabelSelector labels.Selector
}

func (s Selector) isZero() bool { return s.Group == "" && s.LabelSelector == nil }

// Matches reports whether the selector chooses a CRD. It needs only metadata, since a CRD's
// name ends in its group.
func (s Selector) Matches(crd metav1.Object) bool {
	selector := s.LabelSelector
	if selector == nil {
		selector = labels.SelectorFromSet(labels.Set{AutoMigrateLabel: AutoMigrateValue})
	}
	return !s.isZero() && (s.Group == "" || s.Group == groupOf(crd.GetName())) && selector.Matches(labels.Set(crd.GetLabels()))
}

// groupOf relies on the API server, which accepts no CRD whose name is
// not plural.group.
func groupOf(crd string) string {
	_, group, _ := strings.Cut(crd, ".")
	return group
}

// scope says which CRDs a CRDMigrator migrates, and how.
type scope struct {
	byKind   map[schema.GroupKind]*profile
	selector Selector
	selected *profile
}

// migrator plans and runs migrations, as [storageversion.Migrator] does.
type migrator interface {
	Plan(ctx context.Context, crd string) (decision.Plan, error)
	Run(ctx context.Context, p decision.Plan, progress func(decision.Report)) (decision.Report, error)
	Forget(crd string)
}

// profile says how the CRDs of one kind of Config, or those of Selector, are migrated.
type profile struct {
	migrator migrator
	observed string   // the annotation that is written, with the generation that needs no more work
	alsoRead []string // annotations with the same meaning that other migrators write
}

// isMarked reports whether an annotation says that this generation of the CRD needs
// no more work.
func (p *profile) isMarked(crd metav1.Object) bool {
	generation := strconv.FormatInt(crd.GetGeneration(), 10)
	return slices.ContainsFunc(append(p.alsoRead, p.observed), func(annotation string) bool {
		return crd.GetAnnotations()[annotation] == generation
	})
}

// mayContain reports whether a CRD may be in scope, by its metadata alone. Other CRDs are not
// read.
func (s scope) mayContain(crd metav1.Object) bool {
	group := groupOf(crd.GetName())
	for kind := range s.byKind {
		if kind.Group == group {
			return true
		}
	}
	return s.selector.Matches(crd)
}

// profileOf returns nil for a CRD that is out of scope.
func (s scope) profileOf(crd *apiextensionsv1.CustomResourceDefinition) *profile {
	if p, ok := s.byKind[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}]; ok {
		return p
	}
	if s.selector.Matches(crd) {
		return s.selected
	}
	return nil
}

// keepSelected ends the run over a CRD that lost the label it was selected by.
func (s scope) keepSelected(_ context.Context, crd *metav1.PartialObjectMetadata) error {
	if s.selector.Matches(crd) {
		return nil
	}
	return fmt.Errorf("%w: %s no longer matches its selector", decision.ErrOutOfScope, crd.Name)
}
