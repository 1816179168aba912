package revision

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/walk"
)

// Options tune an [Upgrader]. The zero value works.
type Options struct {
	decision.Policy
	// Limiter paces all requests; nil means one of its own with default limits.
	Limiter *walk.Limiter
	// Clock has the time since which a revision is kept; nil means the API server's, as the Date
	// of its responses has it: several clients write and compare that time.
	Clock clock.PassiveClock
	// Progress, if given, is called with an upgrade after each of its steps, by
	// several goroutines at once.
	Progress func(Result)
}

// Upgrader upgrades the stored objects of one family in one cluster.
type Upgrader struct {
	config  *rest.Config
	family  decision.Family
	options Options
	client  *cluster.Client
	clock   clock.PassiveClock // for the time since which a revision is kept
	local   clock.PassiveClock // for the age of a scan
}

// New makes an upgrader. It sends nothing.
func New(cfg *rest.Config, family decision.Family, o Options) (*Upgrader, error) {
	if o.Limiter == nil {
		o.Limiter = walk.NewLimiter(walk.Limits{})
	}
	u := &Upgrader{config: cfg, family: family, options: o, local: o.Clock, clock: o.Clock}
	if o.Clock == nil {
		u.local = clock.RealClock{}
		server := kube.NewServerClock(u.local)
		cfg = rest.CopyConfig(cfg)
		cfg.Wrap(server.RoundTripper)
		u.clock = server
	}
	var err error
	if u.client, err = cluster.New(cfg, o.Limiter); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return u, nil
}

// WithPolicy is the same upgrader with another policy.
func (u *Upgrader) WithPolicy(p decision.Policy) *Upgrader {
	other := *u
	other.options.Policy = p
	return &other
}

// WithMaxInFlight is the same upgrader, of which all copies together write no more than n
// revisions at once.
func (u *Upgrader) WithMaxInFlight(n int) (*Upgrader, error) {
	o := u.options
	o.Limiter = o.Limiter.Narrow(walk.Limits{MaxInFlight: n})
	return New(u.config, u.family, o)
}

// Scope is which revisions are asked about.
type Scope struct {
	// Namespace; empty means all.
	Namespace string
	// Selector of the objects that refer to revisions; nil means all. A revision is
	// in scope if one of them is.
	Selector labels.Selector
}

// CRDs of all stored kinds, as the API server has them. Where none
// is found, the software that the family belongs to is not installed.
func (u *Upgrader) CRDs(ctx context.Context) (map[schema.GroupResource]decision.CRD, error) {
	resources := u.family.Describe().Resources
	crds, errs := make([]decision.CRD, len(resources)), make([]error, len(resources))
	var reads sync.WaitGroup
	for i, r := range resources {
		reads.Go(func() {
			errs[i] = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
				crd, err := u.client.CRD(ctx, r)
				crds[i] = decision.CRDOf(crd)
				return err
			})
		})
	}
	reads.Wait()
	all := map[schema.GroupResource]decision.CRD{}
	for i, r := range resources {
		if errs[i] != nil {
			return nil, cluster.Forbidden(errs[i])
		}
		all[r] = crds[i]
	}
	return all, nil
}
