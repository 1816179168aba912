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
	// AutoMigrateLabel with the value AutoMigrateValue on a CRD asks for
	// its migration, where a [Selector] names no other label.
	AutoMigrateLabel = "godwit.dev/auto-migrate-storage-version"
	// AutoMigrateValue is the label's value: any other one, or none, opts out.
	AutoMigrateValue = "true"

	// ClusterAPIObservedGenerationAnnotation is where Cluster API's migrator, v1.10
	// to v1.14, leaves the generation of a CRD that needs no more work, and where a
	// [CRDMigrator] with Config leaves it unless it has a name of its own.
	ClusterAPIObservedGenerationAnnotation = "crd-migration.cluster.x-k8s.io/observed-generation"
	// clusterAPIProposalObservedGenerationAnnotation is the name in Cluster API's
	// proposal. No release writes it; it is read like the other.
	clusterAPIProposalObservedGenerationAnnotation = "cluster.x-k8s.io/crd-migration-observed-generation"
	// ObservedGenerationAnnotation is the same for CRDs that a Selector
	// chose. Those on which nothing was to be done are not written to.
	ObservedGenerationAnnotation = "godwit.dev/observed-generation"
)

// ByObjectConfig is how the objects of one kind are migrated.
type ByObjectConfig struct {
	// UseCache takes the first candidates from the cache of Client, as the Go
	// type that Config names. Set it only where the operator has an informer for
	// that type already: without one, this starts it. All objects are listed
	// live afterwards in any case, since a cache may lag behind.
	UseCache bool
	// UseStatusForStorageVersionMigration sends the write to /status, which
	// webhooks of the objects themselves are usually not asked about. The
	// storage version must have the status subresource.
	UseStatusForStorageVersionMigration bool
}

// Selector chooses CRDs by what they are and by their labels.
type Selector struct {
	// Group is the API group; empty means any.
	Group string
	// LabelSelector matches labels of the CRD; nil means AutoMigrateLabel
	// with AutoMigrateValue.
	LabelSelector labels.Selector
}

func (s Selector) isZero() bool { return s.Group == "" && s.LabelSelector == nil }

// Matches needs no more than metadata: a CRD's name ends in its group.
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

// scope is what a CRDMigrator takes care of, and how.
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

// profile is how CRDs are migrated that are in scope for one reason.
type profile struct {
	migrator migrator
	observed string   // the annotation that is written, for the generation that needs no more work
	alsoRead []string // annotations of the same meaning that others write
}

// observes reports whether an annotation says that the CRD, as it is now, needs
// no more work.
func (p *profile) observes(crd metav1.Object) bool {
	generation := strconv.FormatInt(crd.GetGeneration(), 10)
	return slices.ContainsFunc(append(p.alsoRead, p.observed), func(annotation string) bool {
		return crd.GetAnnotations()[annotation] == generation
	})
}

// mayHold spares reading CRDs that are out of scope by their metadata.
func (s scope) mayHold(crd metav1.Object) bool {
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
