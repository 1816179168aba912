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

// WithPolicy is the same upgrader with another policy.
func (u *Upgrader) WithPolicy(p Policy) *Upgrader {
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
	*ReferenceIndex
	items        []Item
	sources      []referrerSource
	crds         map[schema.GroupResource]CRD
	replacements map[string][]replacementRef // by the name of the source
	superseded   map[string]string           // sources, by the name of the successor that they say
	rolledBack   map[string]string           // sources that were rolled back, by the name of the successor
}

// replacementRef is a revision that says where it comes from.
type replacementRef struct {
	name string
	from types.UID
}

// replacementOf a source; empty if there is none, or nobody can tell which.
func (n *namespace) replacementOf(source *appsv1.ControllerRevision) string {
	return n.replacementFor(source.Name, source.UID, notedReplacement(source))
}

func (n *namespace) replacementFor(name string, uid types.UID, noted string) string {
	if noted != "" {
		return noted
	}
	var found string
	for _, h := range n.replacements[name] {
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
		definitions, err := u.CRDs(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		look := &scanner{Upgrader: u, sources: sources, definitions: definitions}
		look.begin()
		for census, err := range u.client.indexes(ctx, scan{sources: sources, namespace: s.Namespace, selector: s.Selector}, look.see) {
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

// CRDs of all kinds that are stashed, as the API server has them. Where none
// is found, the software that the family belongs to is not installed.
func (u *Upgrader) CRDs(ctx context.Context) (map[schema.GroupResource]CRD, error) {
	all := map[schema.GroupResource]CRD{}
	for _, r := range u.family.Describe().Resources {
		err := walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
			d, err := u.client.crd(ctx, r)
			all[r] = d
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// scanner gathers what a scan of one namespace shows.
type scanner struct {
	*Upgrader
	sources     []referrerSource
	definitions map[schema.GroupResource]CRD
	found       *namespace
	seen        map[string]bool
}

func (l *scanner) begin() {
	l.found = &namespace{sources: l.sources, crds: l.definitions, replacements: map[string][]replacementRef{}, superseded: map[string]string{}, rolledBack: map[string]string{}}
	l.seen = map[string]bool{}
}

// see judges one revision, and keeps what there is to tell of it.
func (l *scanner) see(c *ReferenceIndex, r *appsv1.ControllerRevision) {
	l.seen[r.Name] = true
	references := c.Of(r.Name)
	for uid, from := range sourcesOf(r) {
		l.found.replacements[from] = append(l.found.replacements[from], replacementRef{r.Name, uid})
	}
	if to := notedReplacement(r); to != "" {
		l.found.superseded[to] = r.Name
		if first := l.found.rolledBack[to]; !rolledBack(r).IsZero() && (first == "" || r.Name < first) {
			l.found.rolledBack[to] = r.Name
		}
	}
	i := decide(facts{family: l.family, policy: l.options.Policy, crds: l.definitions, revision: r,
		references: references, ownerGone: c.ownerGone(r), replacement: notedReplacement(r)}).Item
	if i.Action == Unmanaged || !c.selected(r, references) {
		return
	}
	l.found.items = append(l.found.items, i)
}

// end adds the references that lead nowhere.
func (l *scanner) end(c *ReferenceIndex) *namespace {
	l.found.ReferenceIndex = c
	for to, source := range l.found.rolledBack { // what comes late to a revision that is gone is led back
		if len(l.found.replacements[to]) == 0 {
			l.found.replacements[to] = []replacementRef{{name: source}}
		}
	}
	for i, item := range l.found.items {
		heir := l.found.replacementFor(item.Name, item.UID, item.Replacement)
		item.Replacement = heir
		if !item.RolledBack.IsZero() {
			l.found.items[i] = l.wasRolledBack(c, item)
			continue
		}
		if heir != "" && (item.Action == Unreferenced || item.Reason == ReasonUndecodable && len(item.References) == 0) {
			item = item.markSuperseded(heir)
		}
		l.found.items[i] = item
	}
	slices.SortFunc(l.found.items, byName)
	var gone []Item
	for name := range c.references {
		references := c.Of(name)
		switch {
		case l.seen[name] || len(references) == 0 || !c.selected(&metav1.ObjectMeta{}, references):
		case len(explicit(references)) == 0:
			if i, needed := l.found.lookedUp(name, references); needed && l.found.superseded[name] == "" {
				gone = append(gone, i)
			}
		default:
			references = explicit(references)
			i := missing(c.Namespace, name, references, l.found.replacements[name])
			if source := l.found.superseded[name]; source != "" && i.Action == Blocked {
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
func (l *scanner) wasRolledBack(c *ReferenceIndex, i Item) Item {
	switch {
	case !l.seen[i.Replacement]:
		i.Replacement = ""
	case i.Action == Unreferenced && len(explicit(c.Of(i.Replacement))) > 0:
		return i.upgradeOrRedo()
	}
	return i
}

// missing is a revision that is referred to and is not there.
func missing(namespace, name string, references []Reference, successors []replacementRef) Item {
	i := Item{Namespace: namespace, Name: name, References: referenceStatuses(references, "")}
	if len(successors) == 1 {
		i.Action, i.Reason, i.Message = Upgrade, ReasonSourceGone, "it is gone, and "+successors[0].name+" has taken its place"
		return i
	}
	i.Action, i.Reason = Blocked, ReasonSourceGone
	i.Message = "it is gone, and nothing says what it held: restore it from a backup, or have its holders refer to something else"
	return i
}
