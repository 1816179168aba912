package conformance

import (
	"context"
	"os/exec"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Harness is how the checks reach an API server, an external system and the provider.
type Harness struct {
	// Config is that of the API server. Its user may do everything.
	Config *rest.Config
	// CRDs are created if they do not exist. [ReadObjects] reads them from files.
	CRDs []*unstructured.Unstructured
	// Open opens an external system for one check, and says how a provider starts that uses
	// it. The namespace is for the check alone; kinds of cluster scope don't use it.
	Open func(ctx context.Context, namespace string) (System, Provider, error)
	// Parallel is how many checks run at a time. Zero means one, which kinds of cluster
	// scope and external systems that checks share need.
	Parallel int
	// Poll is how often the provider observes an external resource that has not changed. The
	// checks wait several times as long before they believe that nothing happens. Zero
	// means 1 s.
	Poll time.Duration
	// Recovery is how long the provider may take to find out what became of an interrupted
	// creation. Zero means 45 s.
	Recovery time.Duration
	// Timeout is how long a check waits for what should happen. Zero means 2 min, since
	// crossplane-runtime delays an object that has failed by up to a minute.
	Timeout time.Duration
	// Only are the checks to run; empty means all of them. The others are NotChecked.
	Only []CheckName
}

// System is the external system behind functions. Each acts as another client of the external
// system does, and not by way of the provider. Without a function, the checks that need it are
// NotChecked. A name is an external name, or what [Kind.NameOf] returns.
type System struct {
	// Add creates the external resource that the spec of the object asks for, and returns its
	// name.
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
	// HideParent removes what the external resource is part of, or makes it unreadable.
	HideParent func(ctx context.Context, name string) (restore func(context.Context) error, err error)
	// SlowDeletion leaves external resources in the state of being deleted, until finish.
	SlowDeletion func(ctx context.Context) (finish func(context.Context) error, err error)
	// OnCall has f asked about each call of the provider, before it is carried out, from any
	// goroutine. [Proxy] does it for external systems with an HTTP API.
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

// Fault is what happens to a call. The zero value lets it pass.
type Fault struct {
	Answer Answer
	// Before runs before the call is carried out, and After before it is answered.
	Before, After func()
}

// Answer is how a call is answered.
type Answer string

const (
	// answered: the call is carried out and answered.
	answered Answer = ""
	// Refused: the external system answers with an error, and carries nothing out.
	Refused Answer = "Refused"
	// Conflict: the external system answers with its conflict, such as HTTP status 409, and
	// carries nothing out.
	Conflict Answer = "Conflict"
	// Lost: the call is carried out, and the connection ends without an answer.
	Lost Answer = "Lost"
	// Dropped: the call is not carried out, and the connection ends without an answer.
	Dropped Answer = "Dropped"
)

// Provider is how a provider starts. One of Setup, Client and Command is set.
type Provider struct {
	// Setup adds the controller of the kind to a manager, whatever it is made of.
	Setup func(m manager.Manager) error
	// Client returns a bare client, from which the package makes a reconciler of
	// crossplane-runtime for Kind. Options are further ones of that reconciler.
	Client  func(m manager.Manager) (managed.ExternalConnector, error)
	Options func(m manager.Manager) []managed.ReconcilerOption
	Kind    schema.GroupVersionKind
	// AddToScheme adds the types that Setup and Client need.
	AddToScheme func(*runtime.Scheme) error
	// Command returns the program that runs the provider, with a kubeconfig for the API
	// server. It is killed at the end of a check, and by the checks that crash it.
	Command func(ctx context.Context, kubeconfig string) *exec.Cmd
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
	return h
}

// Apply carries a call out as the fault says, for an external system within the test's process.
// As are the errors that the provider's client returns for the answers.
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
	if f.Answer != answered {
		return as[f.Answer]
	}
	return err
}
