package revision

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Options tune an [Upgrader]. The zero value works.
type Options struct {
	Policy
	// Limiter paces all requests; nil means one of its own with default limits.
	Limiter *walk.Limiter
	// Clock tells since when a revision is kept; nil means the API server's, as the Date
	// of its responses has it: several clients write and compare that time.
	Clock clock.PassiveClock
	// Progress, if given, is told how far an upgrade is after each of its steps, by
	// several goroutines at once.
	Progress func(Result)
}

// Upgrader upgrades the stashed objects of one family in one cluster.
type Upgrader struct {
	config  *rest.Config
	family  Family
	options Options
	client  *client
	clock   clock.PassiveClock // tells since when a revision is kept
	local   clock.PassiveClock // tells how old a scan is
}

// New makes an upgrader. It sends nothing.
func New(cfg *rest.Config, family Family, o Options) (*Upgrader, error) {
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
	if u.client, err = newClient(cfg, o.Limiter); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return u, nil
}

// With is the same upgrader with another policy.
func (u *Upgrader) With(p Policy) *Upgrader {
	other := *u
	other.options.Policy = p
	return &other
}

// AtOnce is the same upgrader, of which all copies together write no more than n
// revisions at once.
func (u *Upgrader) AtOnce(n int) (*Upgrader, error) {
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

// Plan yields what is to be done about every revision in scope, namespace by
// namespace. Nothing is written.
func (u *Upgrader) Plan(ctx context.Context, s Scope) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for n, err := range u.namespaces(ctx, s) {
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, i := range n.items {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// namespace is what one scan found in one namespace.
type namespace struct {
	*Census
	items       []Item
	sources     []source
	definitions map[schema.GroupResource]Definition
	successors  map[string][]heir // by the name of the source
	kept        map[string]string // sources, by the name of the successor that they say
	back        map[string]string // sources that were rolled back, by the name of the successor
}

// heir is a revision that says where it comes from.
type heir struct {
	name string
	from types.UID
}

// successorOf a source; empty if there is none, or nobody can tell which.
func (n *namespace) successorOf(source *appsv1.ControllerRevision) string {
	return n.heirOf(source.Name, source.UID, successorOf(source))
}

func (n *namespace) heirOf(name string, uid types.UID, noted string) string {
	if noted != "" {
		return noted
	}
	var found string
	for _, h := range n.successors[name] {
		if h.from != uid {
			continue
		}
		if found != "" {
			return ""
		}
		found = h.name
	}
	return found
}

// namespaces scans a scope.
func (u *Upgrader) namespaces(ctx context.Context, s Scope) iter.Seq2[*namespace, error] {
	return func(yield func(*namespace, error) bool) {
		sources, err := u.client.sources(ctx, u.family.Describe())
		if err != nil {
			yield(nil, err)
			return
		}
		definitions, err := u.Definitions(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		look := &look{Upgrader: u, sources: sources, definitions: definitions}
		look.begin()
		for census, err := range u.client.censuses(ctx, scan{sources: sources, namespace: s.Namespace, selector: s.Selector}, look.see) {
			if err != nil {
				yield(nil, err)
				return
			}
			n := look.end(census)
			if err := u.confirm(ctx, n); err != nil {
				yield(nil, err)
				return
			}
			if !yield(n, nil) {
				return
			}
			look.begin()
		}
	}
}

// Definitions of all kinds that are stashed, as the API server has them. Where none
// is found, the software that the family belongs to is not installed.
func (u *Upgrader) Definitions(ctx context.Context) (map[schema.GroupResource]Definition, error) {
	all := map[schema.GroupResource]Definition{}
	for _, r := range u.family.Describe().Definitions {
		err := walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
			d, err := u.client.definition(ctx, r)
			all[r] = d
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// look gathers what a scan of one namespace shows.
type look struct {
	*Upgrader
	sources     []source
	definitions map[schema.GroupResource]Definition
	found       *namespace
	seen        map[string]bool
}

func (l *look) begin() {
	l.found = &namespace{sources: l.sources, definitions: l.definitions, successors: map[string][]heir{}, kept: map[string]string{}, back: map[string]string{}}
	l.seen = map[string]bool{}
}

// see judges one revision, and keeps what there is to tell of it.
func (l *look) see(c *Census, r *appsv1.ControllerRevision) {
	l.seen[r.Name] = true
	references := c.Of(r.Name)
	for uid, from := range ancestors(r) {
		l.found.successors[from] = append(l.found.successors[from], heir{r.Name, uid})
	}
	if to := successorOf(r); to != "" {
		l.found.kept[to] = r.Name
		if first := l.found.back[to]; !rolledBack(r).IsZero() && (first == "" || r.Name < first) {
			l.found.back[to] = r.Name
		}
	}
	i := judge(facts{family: l.family, policy: l.options.Policy, definitions: l.definitions, revision: r,
		references: references, ownerGone: c.ownerGone(r), successor: successorOf(r)}).Item
	if i.Action == NotMine || !c.selected(r, references) {
		return
	}
	l.found.items = append(l.found.items, i)
}

// end adds the references that lead nowhere.
func (l *look) end(c *Census) *namespace {
	l.found.Census = c
	for to, source := range l.found.back { // what comes late to a revision that is gone is led back
		if len(l.found.successors[to]) == 0 {
			l.found.successors[to] = []heir{{name: source}}
		}
	}
	for i, item := range l.found.items {
		heir := l.found.heirOf(item.Name, item.UID, item.Successor)
		item.Successor = heir
		if !item.RolledBack.IsZero() {
			l.found.items[i] = l.wasRolledBack(c, item)
			continue
		}
		if heir != "" && (item.Action == Orphan || item.Reason == ReasonUndecodable && len(item.Referrers) == 0) {
			item = item.takenOver(heir)
		}
		l.found.items[i] = item
	}
	slices.SortFunc(l.found.items, byName)
	var gone []Item
	for name := range c.references {
		references := c.Of(name)
		switch {
		case l.seen[name] || len(references) == 0 || !c.selected(&metav1.ObjectMeta{}, references):
		case len(direct(references)) == 0:
			if i, needed := l.found.lookedUp(name, references); needed && l.found.kept[name] == "" {
				gone = append(gone, i)
			}
		default:
			references = direct(references)
			i := missing(c.Namespace, name, references, l.found.successors[name])
			if source := l.found.kept[name]; source != "" && i.Action == Blocked {
				i.Action, i.Message = Deferred, "it is gone, and is made again of "+source+", whose place it had taken"
			}
			gone = append(gone, i)
		}
	}
	l.found.items = append(l.found.items, gone...)
	slices.SortFunc(l.found.items, byName)
	return l.found
}

func byName(a, b Item) int { return strings.Compare(a.Name, b.Name) }

// wasRolledBack is an item of a source that was. Where references to the successor are
// left, the rollback was interrupted.
func (l *look) wasRolledBack(c *Census, i Item) Item {
	switch {
	case !l.seen[i.Successor]:
		i.Successor = ""
	case i.Action == Orphan && len(direct(c.Of(i.Successor))) > 0:
		return i.orAgain()
	}
	return i
}

// missing is a revision that is referred to and is not there.
func missing(namespace, name string, references []Reference, successors []heir) Item {
	i := Item{Namespace: namespace, Name: name, Referrers: places(references, "")}
	if len(successors) == 1 {
		i.Action, i.Reason, i.Message = Upgrade, ReasonSourceGone, "it is gone, and "+successors[0].name+" has taken its place"
		return i
	}
	i.Action, i.Reason = Blocked, ReasonSourceGone
	i.Message = "it is gone, and nothing says what it held: restore it from a backup, or have its holders refer to something else"
	return i
}
