package conformance

import (
	"context"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Harness gives the checks an API server, an external system and the provider.
type Harness struct {
	// Config is that of the API server. Its user may do everything.
	Config *rest.Config
	// CRDs are created if they do not exist. [ReadObjects] reads them from files.
	CRDs []*unstructured.Unstructured
	// Open opens an external system for one check, and returns how to start a provider that uses it. Only this check
	// uses the namespace; cluster-scoped kinds do not need it.
	Open func(ctx context.Context, namespace string) (System, Provider, error)
	// Parallel is how many checks run at the same time. Zero means one. Shared external systems need one. So do
	// cluster-scoped kinds, and programs that reconcile all namespaces ([Provider.WatchesNamespace]): the provider of one
	// check would reconcile the objects of another. To run those in parallel, split the checks by Only, and give each run a
	// control plane of its own.
	Parallel int
	// Poll is how often the provider observes an external resource that has not changed. The checks wait several times
	// as long before they conclude that nothing happens. Zero means 1 s.
	Poll time.Duration
	// Recovery is how long the provider may take to find the outcome of an interrupted creation. Zero means 45 s.
	Recovery time.Duration
	// Timeout is how long a check waits for an expected event. Zero means 2 min: crossplane-runtime delays an object
	// that has failed by up to a minute.
	Timeout time.Duration
	// Only are the checks to run; empty means all of them. The others are NotChecked.
	Only []CheckName
	// Progress gets a line for each check when it ends. Nil means standard error, which go test prints also if its time
	// limit ends the tests.
	Progress io.Writer
}

// System has functions that act on the external system as another client, not through the provider. Without a function,
// the checks that need it are NotChecked. A name is an external name, or the result of [Kind.NameOf].
type System struct {
	// Add creates the external resource for the spec of the object, and returns its name.
	Add func(ctx context.Context, mg *unstructured.Unstructured) (name string, err error)
	// AddTwins creates two external resources, both of which the provider finds when it looks
	// the object up by its spec.
	AddTwins func(ctx context.Context, mg *unstructured.Unstructured) error
	// List returns the names of all external resources of the kind. Every check needs it.
	List func(ctx context.Context) ([]string, error)
	// Change changes a field of the external resource that the spec has.
	Change func(ctx context.Context, name string) error
	// Remove deletes the external resource.
	Remove func(ctx context.Context, name string) error
	// HideParent removes the parent of the external resource, or makes it unreadable.
	HideParent func(ctx context.Context, name string) (restore func(context.Context) error, err error)
	// SlowDeletion leaves external resources in the state of being deleted, until finish.
	SlowDeletion func(ctx context.Context) (finish func(context.Context) error, err error)
	// OnCall sets f, which returns the fault of each call of the provider before the call is carried out. It is called
	// from any goroutine. [Proxy] implements it for external systems with an HTTP API.
	OnCall func(f func(Operation) Fault)
	// Close closes the external system.
	Close func(ctx context.Context) error
}

// Operation is what a call to the external system does.
type Operation string

const (
	// Read reads one external resource by its identity.
	Read Operation = "Read"
	// Search looks external resources up by other fields, or lists them.
	Search Operation = "Search"
	// Create creates an external resource.
	Create Operation = "Create"
	// Update changes an external resource.
	Update Operation = "Update"
	// Delete deletes an external resource.
	Delete Operation = "Delete"
)

// Fault is a fault of a call. The zero value lets the call pass.
type Fault struct {
	Answer Answer
	// Before runs before the call is carried out, and After before it is answered.
	Before, After func()
}

// Answer is how a call is answered.
type Answer string

const (
	// answered means that the call is carried out and answered.
	answered Answer = ""
	// Refused means that the external system answers with an error and does not carry the call out.
	Refused Answer = "Refused"
	// ServerError means that the external system answers with an error of its own, such as HTTP status 500, and does not
	// carry the call out. A harness that can't tell it from Refused answers as for Refused.
	ServerError Answer = "ServerError"
	// Conflict means that the external system answers with its conflict, such as HTTP status 409, and does not carry
	// the call out.
	Conflict Answer = "Conflict"
	// Lost means that the call is carried out, and the connection ends without an answer.
	Lost Answer = "Lost"
	// Dropped means that the call is not carried out, and the connection ends without an answer.
	Dropped Answer = "Dropped"
)

// Provider is how a provider starts. One of Setup, Client and Command is set.
type Provider struct {
	// Setup adds the controller of the kind to a manager.
	Setup func(m manager.Manager) error
	// Client returns a bare client. The package creates a crossplane-runtime reconciler with it for Kind; Options
	// returns further options of that reconciler.
	Client  func(m manager.Manager) (managed.ExternalConnector, error)
	Options func(m manager.Manager) []managed.ReconcilerOption
	Kind    schema.GroupVersionKind
	// AddToScheme adds the types that Setup and Client need.
	AddToScheme func(*runtime.Scheme) error
	// Command returns the program that runs the provider, with a kubeconfig for the API server, whose context has the
	// namespace of the check. It is killed at the end of a check, and by the checks that crash it.
	Command func(ctx context.Context, kubeconfig string) *exec.Cmd
	// WatchesNamespace says that the program of Command reconciles only objects in the namespace of its check, which
	// [Harness.Open] gets: it has a flag for the namespace, or reads it from the kubeconfig.
	WatchesNamespace bool
}

const (
	defaultPoll     = time.Second
	defaultRecovery = 45 * time.Second
	defaultTimeout  = 2 * time.Minute
)

func (h Harness) withDefaults() Harness {
	h.Parallel = max(h.Parallel, 1)
	if h.Poll == 0 {
		h.Poll = defaultPoll
	}
	if h.Recovery == 0 {
		h.Recovery = defaultRecovery
	}
	if h.Timeout == 0 {
		h.Timeout = defaultTimeout
	}
	if h.Progress == nil {
		h.Progress = os.Stderr
	}
	return h
}

// Apply sends a call with the fault, for an external system within the test's process. as has the errors that the
// provider's client returns for the answers; for an answer that it lacks, it is the error for Refused.
func (f Fault) Apply(send func() error, as map[Answer]error) error {
	if f.Before != nil {
		f.Before()
	}
	var err error
	if f.Answer == answered || f.Answer == Lost {
		err = send()
	}
	if f.After != nil {
		f.After()
	}
	switch answer, known := as[f.Answer]; {
	case f.Answer == answered:
		return err
	case known:
		return answer
	default:
		return as[Refused]
	}
}
