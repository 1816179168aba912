package storageversion

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/internal/storageversion/recent"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
	"github.com/godwit-dev/godwit/walk"
)

// Options tune a [Migrator]. The zero value works.
type Options struct {
	decision.Policy
	// Limiter paces every request; share it between migrators of one cluster.
	// Nil means one of its own, with the default limits.
	Limiter *walk.Limiter
	// Journal keeps the checkpoints; nil means an annotation on the CRD.
	Journal evidence.Journal
	// Scan makes Observe read the objects' metadata until it finds stale
	// managedFields. If there are none, Observe reads every object.
	Scan bool
	// OnLoss is called with the values of each object that a rewrite would drop, one call at a time, while Scan or a run tries all
	// objects. An object may come twice. Its error makes the object one of which nothing is known. Nil for none.
	OnLoss func(LostValues) error
	// Preflight makes Observe try the policy's write, so that a plan says what
	// admission would do with the writes of a run; nil means no preflight. Run of
	// package preflight sends a dry run for one object of each namespace, for a user who
	// reads the plan. Its Changes is for a program, which retries what is denied.
	Preflight Preflight
	// CheckReadable makes Observe find out whether the API server can read each object,
	// so that a user who reads the plan learns it before a run does.
	CheckReadable bool
	// AskEachServer makes a run ask each API server, at its own address, whether it has
	// adopted the storage version. A client in the cluster reaches these addresses.
	AskEachServer bool
	// NoTrim leaves status.storedVersions as it is.
	NoTrim bool
	// DryRun sends every write as a server-side dry run: the report names the
	// objects that admission would refuse, and nothing changes. Objects that
	// would be accepted count as Skipped. A dry run does not wait for the
	// settle time, since it writes nothing.
	DryRun bool
	// Attempts bounds the tries for one object; 0 means walk.DefaultAttempts.
	Attempts int
	// MaxFailures bounds the failures that a report names, of the objects and of their managedFields; 0 means walk.DefaultFailures.
	MaxFailures int
	// PageObjects is the size of a page; 0 means walk.DefaultPageObjects.
	PageObjects int64
	// BeforePage is called before the writes of each page and before the trim, with
	// the CRD's metadata at that time. If it returns an error, the run stops, and Run
	// returns this error.
	BeforePage func(ctx context.Context, crd *metav1.PartialObjectMetadata) error
	// List lists the objects; nil means that the migrator's own client does. A List may
	// show fewer objects than the API server has: the trim does not rely on it.
	List listing.Lister
	// Candidates are written before any page is listed; nil for none.
	Candidates func(context.Context) ([]*metav1.PartialObjectMetadata, error)
	// Recent remembers the writes of earlier passes; nil for a process that makes one pass only.
	Recent *recent.Writes
	// Clock is for tests; nil means the real one.
	Clock clock.PassiveClock
}

// Migrator migrates the custom resources of one cluster. It is safe for
// concurrent use on different CRDs.
type Migrator struct {
	options Options
	client  *request.Client

	mu     sync.Mutex
	leases map[string]*settle.History // by name of the CRD
	losses map[string]lossesAt        // by name of the CRD
}

// lossesAt are what the round trips of all objects have shown at a generation of a CRD.
type lossesAt struct {
	generation kube.Generation
	found      *decision.RoundTrips
}

// New returns a migrator that talks to the cluster of cfg. Limits and retries
// of cfg do not apply: the limiter paces, the walk retries.
func New(cfg *rest.Config, o Options) (*Migrator, error) {
	if !slices.Contains(decision.Writes, o.Write.OrDefault()) {
		return nil, fmt.Errorf("no such write: %q; there are %v", o.Write, decision.Writes)
	}
	for _, phase := range o.SkipPhases {
		if !slices.Contains(decision.Phases, phase) {
			return nil, fmt.Errorf("no such phase: %q; there are %v", phase, decision.Phases)
		}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Limiter == nil {
		o.Limiter = walk.NewLimiter(walk.Limits{})
	}
	c, err := request.New(cfg, o.Limiter, o.Clock)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if o.Journal == nil {
		o.Journal = &evidence.AnnotationJournal{Client: c}
	}
	return &Migrator{options: o, client: c, leases: map[string]*settle.History{}, losses: map[string]lossesAt{}}, nil
}

// list returns what lists the objects: the embedder's reader if there is one, or the client.
func (m *Migrator) list() listing.Lister {
	if m.options.List != nil {
		return m.options.List
	}
	return m.client.Objects
}

// Forget drops what m remembers of a CRD, after it was deleted.
func (m *Migrator) Forget(crd string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, crd)
	delete(m.losses, crd)
}

// Preflight tries the policy's write before a run, without carrying it out. Run of package
// preflight is one.
type Preflight func(context.Context, PreflightTarget) (*decision.PreflightReport, error)

// PreflightTarget is what a [Preflight] needs from a [Migrator].
type PreflightTarget struct {
	// Facts are what was observed before. The CRD is served, and the caller has the
	// permissions on its objects that a run needs.
	Facts  decision.Facts
	Policy decision.Policy
	// Client sends requests, paced like the run's own.
	Client *kube.Client
	// PageObjects is the size of a page; 0 means walk.DefaultPageObjects.
	PageObjects int64
	// DryRun sends a write of one object at a version as a server-side dry run, and returns the
	// whole object as the write would leave it.
	DryRun func(ctx context.Context, version string, w decision.Write, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// TryCheckpoint and TryTrim send the run's writes of the CRD as server-side dry runs. They send none that the run does not make.
	TryCheckpoint, TryTrim func(context.Context) error
}

// LostValues are the values of one object that a rewrite drops or changes.
type LostValues struct {
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	UID       types.UID      `json:"uid"`
	Version   string         `json:"version"`
	Values    []values.Value `json:"values"`
}
