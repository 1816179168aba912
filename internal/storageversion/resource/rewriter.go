package resource

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
	"github.com/godwit-dev/godwit/walk"
)

// Options tune a [Rewriter]. The zero value works.
type Options struct {
	// Limiter paces every request; nil means one with the default limits.
	Limiter *walk.Limiter
	// ReadOnly is for a plan by a user who may only read.
	ReadOnly bool
	// Namespace restricts a run to the objects of one namespace; empty means all objects.
	Namespace string
	// Settle is the time between the change and the first write; 0 means the default of decision.Policy, negative
	// means no time. Since the time of the change is not known, it begins when the run first finds that all API
	// servers have the change.
	Settle time.Duration
	// AcceptStaleLeases does not wait for API servers whose lease is stale.
	AcceptStaleLeases bool
	// Configuration is the hash of the encryption configuration that every API server must have loaded,
	// as [ConfigurationHash] makes it; empty means that the run does not check it.
	Configuration string
	// DryRun sends every write as a dry run, and keeps no journal.
	DryRun bool
	// MaxFailures bounds the failures that a report names; 0 means walk.DefaultFailures.
	MaxFailures int
	// Resume continues an interrupted run: the caller knows that no API server got another configuration since.
	Resume bool
	// JournalNamespace has the journal; empty means kube-system.
	JournalNamespace string
	// PageObjects is the size of a page; 0 means walk.DefaultPageObjects.
	PageObjects int64
	// Clock is for tests; nil means the real one.
	Clock clock.PassiveClock
}

// Rewriter rewrites objects of one cluster. It is for one run, and for one caller at a time.
type Rewriter struct {
	options Options
	config  *rest.Config
	client  *request.Client
	journal *journal
	earlier record    // of the run that is resumed
	ready   time.Time // since when all API servers are known to have the change
}

// New returns a rewriter for the cluster of cfg. Limits and retries of cfg do not apply.
func New(cfg *rest.Config, o Options) (*Rewriter, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Limiter == nil {
		o.Limiter = walk.NewLimiter(walk.Limits{})
	}
	o.JournalNamespace = cmp.Or(o.JournalNamespace, metav1.NamespaceSystem)
	client, err := request.New(cfg, o.Limiter, o.Clock)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	j := &journal{client: client, namespace: o.JournalNamespace, retry: request.Retry}
	if o.ReadOnly {
		j.retry = quicklist.Retry
	}
	return &Rewriter{options: o, config: cfg, client: client, journal: j}, nil
}

func (r *Rewriter) terms() settle.Terms {
	return settle.Terms{Settle: r.options.Settle, AcceptStaleLeases: r.options.AcceptStaleLeases}
}

// RequiredPermissions lists the permissions that a run needs for one resource.
func RequiredPermissions(r Resource, o Options) []kube.Grant {
	verbs := []string{"list", "patch"}
	if o.ReadOnly {
		verbs = verbs[:1]
	}
	var all []kube.Grant
	for _, verb := range verbs {
		all = append(all, kube.Grant{Verb: verb, Resource: r.GroupResource(), Namespace: o.namespaceOf(r)})
	}
	return all
}

func (o Options) namespaceOf(r Resource) string {
	if !r.Namespaced {
		return ""
	}
	return o.Namespace
}

// JournalPermissions lists the permissions that the journal needs in its namespace.
func JournalPermissions(namespace string) []kube.Grant {
	namespace = cmp.Or(namespace, metav1.NamespaceSystem)
	all := []kube.Grant{{Verb: "create", Resource: JournalResource.GroupResource(), Namespace: namespace}}
	for _, verb := range []string{"get", "patch", "delete"} {
		all = append(all, kube.Grant{Verb: verb, Resource: JournalResource.GroupResource(), Name: JournalName, Namespace: namespace})
	}
	return all
}

// ReadPermissions lists the permissions that Catalog needs to find what other API servers serve. Every user may read
// discovery itself.
func ReadPermissions() []kube.Grant {
	return []kube.Grant{{Verb: "list", Resource: apiServiceList.GroupResource()}}
}
