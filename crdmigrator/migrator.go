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

// Phase is one of the two parts of a migration.
type Phase = decision.Phase

const (
	// StorageVersionMigrationPhase rewrites objects at the storage version and trims
	// status.storedVersions.
	StorageVersionMigrationPhase = decision.StorageVersionMigrationPhase
	// CleanupManagedFieldsPhase removes entries of managedFields that name a version which
	// is not served any more.
	CleanupManagedFieldsPhase = decision.CleanupManagedFieldsPhase
)

// Write is the request that rewrites an object. Each of them makes the API server encode the
// object again. They differ in their cost, and in the conflicts and webhooks that they can meet.
type Write = decision.Write

const (
	// WritePatch is an empty merge patch: the cheapest write. An object that another
	// client has written meanwhile is at the storage version and needs no write. An object
	// whose managedFields a conversion webhook must convert gets a WriteApply instead.
	WritePatch = decision.WritePatch
	// WriteStatusPatch is an empty merge patch of /status, for which webhooks of the objects
	// themselves are usually not called. The storage version must have the status subresource.
	WriteStatusPatch = decision.WriteStatusPatch
	// WriteUpdate reads the object live and writes it back as it is. After a conflict the
	// object is left to the next pass.
	WriteUpdate = decision.WriteUpdate
	// WriteApply is a server-side apply without fields. It conflicts if the UID or the
	// resourceVersion changed.
	WriteApply = decision.WriteApply
	// WriteStatusApply is a server-side apply without fields to /status.
	WriteStatusApply = decision.WriteStatusApply
)

// CheckpointAnnotation on a CRD has the checkpoint of a migration that is under way or was
// interrupted. Without it, the migration starts again.
const CheckpointAnnotation = evidence.CheckpointAnnotation

// CRDMigrator is a reconciler of CustomResourceDefinitions: of those whose kinds Config
// names and of those that Selector selects. Set its fields, then call SetupWithManager, once.
type CRDMigrator struct {
	// Client reads the objects of kinds with UseCache from the operator's cache, and
	// writes the annotation with the generation that needs no more work.
	Client client.Client
	// APIReader reads CRDs and lists objects, live: mgr.GetAPIReader().
	APIReader client.Reader

	// SkipCRDMigrationPhases are the phases not to run. If both are skipped,
	// SetupWithManager registers no reconciler.
	SkipCRDMigrationPhases []Phase
	// Config names kinds, by a value of their Go type; any served version will do.
	Config map[client.Object]ByObjectConfig
	// Selector chooses CRDs; its zero value chooses none. For a CRD that Config names,
	// Config applies.
	Selector Selector
	// ObservedGenerationAnnotation is the annotation of a CRD of Config for the
	// generation that needs no more work; empty means
	// ClusterAPIObservedGenerationAnnotation, so that an operator can change from
	// Cluster API's migrator to this one and back. Both names that Cluster API has
	// for the annotation are read in any case.
	ObservedGenerationAnnotation string

	// Recorder creates an event for each trim and each failure; nil means that no
	// events are created.
	Recorder events.EventRecorder
	// PageSize is the number of objects in a page; 0 means
	// walk.DefaultPageObjects, and 100 for CRDs that Selector chose.
	PageSize int64
	// CacheGCInterval is how often the reconciler drops from memory which objects it
	// wrote over an hour ago; 0 means 10 minutes.
	CacheGCInterval time.Duration

	// AcceptLosses is ByObjectConfig.AcceptLosses of CRDs that Selector chose.
	AcceptLosses []string
	// AcceptChanges is ByObjectConfig.AcceptChanges of CRDs that Selector chose.
	AcceptChanges []string
	// Write is how objects are written; empty means WritePatch, and WriteUpdate for
	// CRDs that Selector chose.
	Write Write
	// Settle is the time until the first write after a change of the storage version, in
	// which requests under way end; 0 means 75 s, a negative value means no time. It
	// begins when the process first sees that every API server has adopted the change: a
	// server may have come back just before the process started.
	Settle time.Duration
	// AcceptStaleLeases continues without the servers whose leases are stale.
	AcceptStaleLeases bool
	// Limiter paces the requests of migrations, except the lists of objects, which go
	// through APIReader; share it with the operator's other migrators. Nil means one of
	// its own, with the default limits.
	Limiter *walk.Limiter

	scope  scope
	clock  clock.PassiveClock // for tests; nil means the real one
	recent *recent.Writes
	mu     sync.Mutex
	memory map[string]*memory // by name of the CRD

	leasesUnread atomic.Bool // the leases could not be read, and that was logged
}

// memory is what the reconciler remembers of a CRD between two reconciliations.
type memory struct {
	plan     *decision.Plan // of a run that waits for the servers to settle
	history  decision.History
	reported time.Time       // when a lack of convergence was last reported
	logged   string          // the last logged message about a wait
	clean    kube.Generation // at which nothing was left to do, so that no annotation was written
}

// memoryOf returns the memory of a CRD, and adds it if there is none yet.
func (r *CRDMigrator) memoryOf(crd string) *memory {
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
