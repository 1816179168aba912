package fleet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/walk"
)

// Scope selects managed resources. The zero value selects all resources of the kind.
type Scope struct {
	Namespace string
	Selector  labels.Selector
}

// has reports whether a managed resource is in scope.
func (s Scope) has(m managed.Resource) bool {
	return (s.Namespace == "" || s.Namespace == m.GetNamespace()) && (s.Selector == nil || s.Selector.Matches(labels.Set(m.GetLabels())))
}

// Options tune a [Fleet]. The zero value works.
type Options struct {
	Scope Scope
	// Limiter paces the requests; nil means one with walk's default limits.
	Limiter *walk.Limiter
	// Canaries are renamed before all others; 0 means 1.
	Canaries int
	// Batch bounds the managed resources that are paused at the same time; 0 means 50.
	Batch int
	// PauseTimeout is how long the provider may take to report a pause; 0 means 2 minutes.
	PauseTimeout time.Duration
	// ProofTimeout is how long the provider may take to report success under the new name; 0 means 5 minutes. A
	// provider retries errors with a delay of up to a minute.
	ProofTimeout time.Duration
	// Identity selects the fields of status.atProvider that must not change.
	Identity Identity
	// AcceptUnsafe renames also where a second external resource may be the result: see [ReasonMayCreate] and
	// [ReasonOthersNotRead].
	AcceptUnsafe bool
	// SourceManagers are further field managers that apply manifests from a source.
	SourceManagers []string
	// Attempts bounds the attempts at a request that the API server does not answer; 0 means walk.DefaultAttempts.
	Attempts int
	// Progress is called after each step of a managed resource, one call at a time. The phase is empty before the last
	// step.
	Progress func(Result)
}

// Defaults of [Options], and of a handover.
const (
	DefaultCanaries     = 1
	DefaultBatch        = 50
	DefaultPauseTimeout = 2 * time.Minute
	DefaultProofTimeout = 5 * time.Minute
)

func (o Options) withDefaults() Options {
	if o.Limiter == nil {
		o.Limiter = walk.NewLimiter(walk.Limits{})
	}
	if o.Canaries == 0 {
		o.Canaries = DefaultCanaries
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.PauseTimeout == 0 {
		o.PauseTimeout = DefaultPauseTimeout
	}
	if o.ProofTimeout == 0 {
		o.ProofTimeout = DefaultProofTimeout
	}
	return o
}

// Fleet is the managed resources of one kind.
type Fleet struct {
	kind    Kind
	client  *kube.Client
	options Options
	clock   clock.PassiveClock
}

// New returns the fleet of a kind. It sends no request.
func New(cfg *rest.Config, kind Kind, o Options) (*Fleet, error) {
	o = o.withDefaults()
	client, err := kube.NewClient(cfg, o.Limiter, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	return &Fleet{kind: kind, client: client, options: o, clock: clock.RealClock{}}, nil
}

// Plan reads all managed resources and decides what to do with each in scope. It writes nothing. Those outside the scope count
// for duplicates, since they share the external system.
func (f *Fleet) Plan(ctx context.Context, naming Naming) ([]Item, error) {
	scan := Scan{Kind: f.kind, AcceptUnsafe: f.options.AcceptUnsafe}
	same := interner{}
	read := func(m managed.Resource) error {
		fact, err := f.fact(ctx, m, naming)
		if err != nil {
			return err
		}
		for _, repeated := range []*string{&fact.Namespace, &fact.Owner.Manager, &fact.Owner.Composite, &fact.PoliciesOwner.Manager, &fact.Account} {
			*repeated = same.intern(*repeated)
		}
		scan.Facts = append(scan.Facts, fact)
		return nil
	}
	everywhere := f.options.Scope == (Scope{})
	err := f.scanIn(ctx, Scope{}, read)
	if !everywhere && apierror.IsForbidden(err) {
		scan.Facts, scan.Unread = nil, quote.Line(apierror.Message(err))
		err = f.scanIn(ctx, f.options.Scope, read)
	}
	if err != nil {
		return nil, err
	}
	return PlanFor(scan), nil
}

func (f *Fleet) fact(ctx context.Context, m managed.Resource, naming Naming) (Fact, error) {
	if !f.options.Scope.has(m) {
		return outside(m.Unstructured), nil
	}
	p, err := naming(ctx, m.Unstructured)
	if err != nil {
		return Fact{}, err
	}
	return factOf(f.kind, m.Unstructured, p, f.options.Identity, f.options.SourceManagers), nil
}

// interner stores each string once: a large fleet has few namespaces, field managers and accounts.
type interner map[string]string

func (t interner) intern(text string) string {
	if kept, has := t[text]; has {
		return kept
	}
	t[text] = text
	return text
}

// Each calls each with every managed resource in scope, page by page. It writes nothing.
func (f *Fleet) Each(ctx context.Context, each func(*unstructured.Unstructured) error) error {
	return f.scan(ctx, func(m managed.Resource) error { return each(m.Unstructured) })
}

// scan calls each with every managed resource in scope, page by page.
func (f *Fleet) scan(ctx context.Context, each func(managed.Resource) error) error {
	return f.scanIn(ctx, f.options.Scope, each)
}

func (f *Fleet) scanIn(ctx context.Context, s Scope, each func(managed.Resource) error) error {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[*unstructured.Unstructured], string, error) {
		return f.client.WholePage(ctx, kube.Scope{Resource: f.kind.Resource, Namespace: s.Namespace, Selector: s.Selector}, limit, token)
	}
	for page, err := range walk.List(ctx, fetch, walk.ListOptions{Attempts: f.options.Attempts}) {
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			if err := each(managed.Of(o)); err != nil {
				return err
			}
		}
	}
	return nil
}
