package storageversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
	"github.com/godwit-dev/godwit/internal/storageversion/recent"
	"github.com/godwit-dev/godwit/walk"
)

// Options tune a [Migrator]. The zero value works.
type Options struct {
	Policy
	// Limiter paces every request; share it between migrators of one cluster.
	// Nil means one of its own, with the default limits.
	Limiter *walk.Limiter
	// Journal keeps the checkpoints; nil means an annotation on the CRD.
	Journal Journal
	// Scan makes Observe read the objects' metadata until it finds stale
	// managedFields, to the last object where there are none.
	Scan bool
	// Preflight makes Observe try the policy's write, so that a plan says what
	// admission would make of a run; nil means that nothing is tried. Run of package
	// preflight sends a dry run for one object of each namespace. It is for plans that
	// a user reads: what it finds takes a user's action.
	Preflight Preflight
	// NoTrim leaves status.storedVersions as it is.
	NoTrim bool
	// DryRun sends every write as a server-side dry run: it tells which
	// objects admission would refuse, and changes nothing. Objects that would
	// be accepted count as Skipped. It does not settle, since nothing is
	// written.
	DryRun bool
	// Attempts bounds the tries for one object; 0 means walk.DefaultAttempts.
	Attempts int
	// PageObjects is the size of a page; 0 means walk.DefaultPageObjects.
	PageObjects int64
	// BeforePage is asked before each page is acted on, and before the trim, with
	// the CRD's metadata as it is then. Its error stops the run and is what
	// Run returns.
	BeforePage func(ctx context.Context, crd *metav1.PartialObjectMetadata) error
	// List lists the objects in place of a client; nil means that a client of the API
	// server does. It may show fewer objects than the API server has, which the trim does
	// not rely on.
	List Lister
	// Candidates are written before any page is listed; nil for none.
	Candidates func(context.Context) ([]*metav1.PartialObjectMetadata, error)
	// Recent is nil where each pass is a process of its own.
	Recent *recent.Writes
	// Clock is for tests; nil means the real one.
	Clock clock.PassiveClock
}

// Phase is one of the two things that are done to objects which outlive a
// version.
type Phase string

const (
	// StorageVersionMigrationPhase writes objects again at the storage version
	// and trims status.storedVersions.
	StorageVersionMigrationPhase Phase = "StorageVersionMigration"
	// CleanupManagedFieldsPhase removes entries of managedFields that name a
	// version which is not served any more.
	CleanupManagedFieldsPhase Phase = "CleanupManagedFields"
)

// Phases are all there are, in their order.
var Phases = []Phase{StorageVersionMigrationPhase, CleanupManagedFieldsPhase}

// Migrator migrates the custom resources of one cluster. It is safe for
// concurrent use on different CRDs.
type Migrator struct {
	options Options
	client  *request.Client

	mu     sync.Mutex
	leases map[string]*settle.History // by name of the CRD
}

// New returns a migrator that talks to the cluster of cfg. Limits and retries
// of cfg do not apply: the limiter paces, the walk retries.
func New(cfg *rest.Config, o Options) (*Migrator, error) {
	if !slices.Contains(Writes, o.Write.orDefault()) {
		return nil, fmt.Errorf("no such write: %q; there are %v", o.Write, Writes)
	}
	for _, phase := range o.SkipPhases {
		if !slices.Contains(Phases, phase) {
			return nil, fmt.Errorf("no such phase: %q; there are %v", phase, Phases)
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
		o.Journal = &annotationJournal{client: c}
	}
	return &Migrator{options: o, client: c, leases: map[string]*settle.History{}}, nil
}

// list is where pages of objects come from.
func (m *Migrator) list() Lister {
	if m.options.List != nil {
		return m.options.List
	}
	return m.client.Objects
}

// Plan observes one CRD and decides what is to be done about it.
func (m *Migrator) Plan(ctx context.Context, crd string) (Plan, error) {
	f, err := m.Observe(ctx, crd)
	if err != nil {
		return Plan{}, err
	}
	return PlanFor(f, m.options.Policy), nil
}

// Report is what a run has done so far.
type Report struct {
	// Storage is the tally of the rewrite. It alone gates the trim.
	Storage walk.Report
	// Candidates is the tally of the objects that an embedder's cache offered,
	// before all objects were listed and counted in Storage.
	Candidates walk.Report
	// ManagedFields is the tally of the cleanup, of objects that needed one.
	// Migrated means cleaned.
	ManagedFields Tally
	// Waiting is the answer, in the API server's words, after which the pass tries
	// again; empty while it goes on.
	Waiting string
	// Requests counts what was sent to the API server for this run.
	Requests int64
	// Trimmed: this run made the storage version the only stored one.
	Trimmed bool
	// Checkpoint is what the journal holds.
	Checkpoint Checkpoint
}

// ErrConflicts reports a complete pass that left objects alone because others
// wrote them at the same moment. Nothing was trimmed; another pass finds most of
// them written.
var ErrConflicts = errors.New("objects were written by others at the same moment")

// Err says what a complete pass has left behind, the gravest first: objects that
// failed, then [ErrConflicts], then managedFields that were not cleaned. Only the
// last of them is compatible with Trimmed.
func (r Report) Err() error {
	storage, fields := r.Storage.Counts, r.ManagedFields.Counts
	switch {
	case storage.Failed > 0:
		return fmt.Errorf("%d of %d objects failed%s", storage.Failed, storage.Total(), first(r.Storage.Failures))
	case storage.Deferred > 0:
		return fmt.Errorf("%w: %d of %d objects%s", ErrConflicts, storage.Deferred, storage.Total(), first(r.Storage.Failures))
	case !fields.Settled():
		return fmt.Errorf("managedFields of %d objects were not cleaned%s", fields.Failed+fields.Deferred, first(r.ManagedFields.Failures))
	}
	return nil
}

func first(failures []godwit.Failure) string {
	if len(failures) == 0 {
		return ""
	}
	f := failures[0]
	return fmt.Sprintf(", the first: %s: %s", strings.TrimPrefix(f.Namespace+"/"+f.Name, "/"), f.Message)
}

// ErrChanged reports that a CRD is no longer as it was planned for: its
// spec changed in a way that voids the evidence, it is being deleted, or a
// write to its status came in between. Observe and plan again.
var ErrChanged = errors.New("the customresourcedefinition changed")

// ErrOutOfScope is what an [Options].BeforePage returns to end a run that is not wanted any
// more. The run writes nothing else then, not even its checkpoint.
var ErrOutOfScope = errors.New("the customresourcedefinition left the scope")

// BlockedError reports a plan that must not be run.
type BlockedError struct {
	CRD      string
	Blockers []godwit.Blocker
}

func (e *BlockedError) Error() string {
	messages := make([]string, len(e.Blockers))
	for i, b := range e.Blockers {
		messages[i] = b.Reason + ": " + b.Message + "; " + b.Fix.String()
	}
	return fmt.Sprintf("%s is blocked: %s", e.CRD, strings.Join(messages, "; "))
}

// settled looks at the servers and remembers what it saw of this change.
func (m *Migrator) settled(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	servers, _, err := m.servers(ctx)
	if err != nil {
		return err
	}
	now := m.client.Clock.Now()
	v := m.look(Facts{CRD: crd, Servers: servers, Now: now})
	if v.Settled {
		return nil
	}
	return &NotSettledError{Until: v.Until, Wait: v.Until.Sub(now), Servers: v.Waiting, Stale: v.Stale}
}

func (m *Migrator) look(f Facts) settle.Settlement {
	m.mu.Lock()
	defer m.mu.Unlock()
	history, spec := m.leases[f.CRD.Name], kube.GenerationOf(f.CRD)
	if history == nil || history.Spec != spec {
		history = &settle.History{Spec: spec}
		m.leases[f.CRD.Name] = history
	}
	return history.Look(f.CRD, f.Servers, f.Now, m.options.terms())
}

// Forget drops what m remembers of a CRD, after it was deleted.
func (m *Migrator) Forget(crd string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, crd)
}

// notFound is how a CRD that does not exist is reported.
func notFound(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return fmt.Errorf("read customresourcedefinition %s: %w", name, err)
}

// ErrNotFound reports a CustomResourceDefinition that does not exist.
var ErrNotFound = errors.New("no such customresourcedefinition")
