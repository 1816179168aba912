package crdmigrator

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/recent"
	"github.com/godwit-dev/godwit/walk"
)

// Phase is one of the two things that are done to objects which outlive a version.
type Phase = decision.Phase

const (
	// StorageVersionMigrationPhase rewrites objects at the storage version and trims
	// status.storedVersions.
	StorageVersionMigrationPhase = decision.StorageVersionMigrationPhase
	// CleanupManagedFieldsPhase removes entries of managedFields that name a version which
	// is not served any more.
	CleanupManagedFieldsPhase = decision.CleanupManagedFieldsPhase
)

// Write is how an object is rewritten. Each of them makes the API server encode the object
// anew; they differ in what they cost and in the admission that they meet.
type Write = decision.Write

const (
	// WritePatch is an empty merge patch: the cheapest write, which cannot conflict. An object
	// whose managedFields a conversion webhook must convert gets a WriteApply instead.
	WritePatch = decision.WritePatch
	// WriteStatusPatch is the same on /status, for which webhooks of the objects themselves
	// are usually not called. The storage version must have the status subresource.
	WriteStatusPatch = decision.WriteStatusPatch
	// WriteUpdate reads the object live and writes it back as it is. After a conflict the
	// object is left to the next pass.
	WriteUpdate = decision.WriteUpdate
	// WriteApply is a server-side apply of nothing, tied to UID and resourceVersion.
	WriteApply = decision.WriteApply
	// WriteStatusApply is the same on /status.
	WriteStatusApply = decision.WriteStatusApply
)

// CheckpointAnnotation on a CRD has the checkpoint of a migration that is under way or was
// interrupted. Without it, the migration starts again.
const CheckpointAnnotation = evidence.CheckpointAnnotation

// CRDMigrator is a reconciler of CustomResourceDefinitions: of those whose kinds Config
// names and of those that Selector selects. Set its fields, then call SetupWithManager, once.
type CRDMigrator struct {
	// Client reads what the operator caches, for kinds with UseCache, and writes
	// the annotation of what is done.
	Client client.Client
	// APIReader reads CRDs and lists objects, live: mgr.GetAPIReader().
	APIReader client.Reader

	// SkipCRDMigrationPhases are not run. With both skipped, nothing is set up.
	SkipCRDMigrationPhases []Phase
	// Config names kinds, by a value of their Go type; any served version will do.
	Config map[client.Object]ByObjectConfig
	// Selector chooses CRDs; its zero value, none. Config goes first.
	Selector Selector
	// ObservedGenerationAnnotation is the annotation of a CRD of Config for the
	// generation that needs no more work; empty means
	// ClusterAPIObservedGenerationAnnotation, so that Cluster API's migrator and this
	// one may follow each other. Both names that Cluster API has for it are read in
	// any case.
	ObservedGenerationAnnotation string

	// Recorder creates an event for each trim and each failure; nil means that no
	// events are created.
	Recorder events.EventRecorder
	// PageSize is the number of objects in a page; 0 means
	// walk.DefaultPageObjects, and 100 for CRDs that Selector chose.
	PageSize int64
	// CacheGCInterval is how often what was written over an hour ago is
	// forgotten; 0 means 10 minutes.
	CacheGCInterval time.Duration

	// Write is how objects are written; empty means WritePatch, and WriteUpdate for
	// CRDs that Selector chose.
	Write Write
	// Settle is the time until the first write, in which API servers adopt a change of
	// the storage version; 0 means 75 s, and a negative one no time at all. It counts from
	// the first sight of every server having adopted the change: the process may have come
	// up a moment after a server came back.
	Settle time.Duration
	// AcceptStaleLeases continues without the servers whose leases are stale.
	AcceptStaleLeases bool
	// Limiter paces every write and all that goes with it, but the lists of
	// objects, which go through APIReader; share it with the operator's other
	// migrators. Nil means one of its own.
	Limiter *walk.Limiter

	scope  scope
	clock  clock.PassiveClock // for tests; nil means the real one
	recent *recent.Writes
	mu     sync.Mutex
	memory map[string]*memory // by name of the CRD

	leasesUnread atomic.Bool // and that was said
}

// memory is what one reconciliation of a CRD leaves to the next.
type memory struct {
	plan     *decision.Plan // of a run that waits for the servers to settle
	history  decision.History
	reported time.Time       // when a lack of convergence was last reported
	said     string          // what was last logged about why nothing happens
	clean    kube.Generation // where nothing was found to do, and so no annotation was written
}

func (r *CRDMigrator) remember(crd string) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory[crd] == nil {
		r.memory[crd] = &memory{}
	}
	return r.memory[crd]
}

func (r *CRDMigrator) forget(crd string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memory, crd)
	for _, p := range r.scope.byKind {
		p.migrator.Forget(crd)
	}
	if r.scope.selected != nil {
		r.scope.selected.migrator.Forget(crd)
	}
}

func (r *CRDMigrator) skips(phase Phase) bool {
	return slices.Contains(r.SkipCRDMigrationPhases, phase)
}
