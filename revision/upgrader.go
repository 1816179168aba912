package revision

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/reference"
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

// Upgrader upgrades the stored objects of one family in one cluster.
type Upgrader struct {
	config  *rest.Config
	family  Family
	options Options
	client  *cluster.Client
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
	if u.client, err = cluster.New(cfg, o.Limiter); err != nil {
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
		for n, err := range u.snapshots(ctx, s) {
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

// Correction is what a user knows about a revision that is Blocked, and the revision does not
// say.
type Correction struct {
	// Owner becomes the controller, in place of another one. Its kind is one of
	// [Description.Owners]. The zero value leaves the controller as it is.
	Owner reference.Owner
	// Labels are set. Other labels stay as they are.
	Labels map[string]string
}

// Fix corrects a revision of the family, and reports whether it wrote anything. A patch by
// another client would be refused where the data of the revision is not compact JSON; see
// package cluster. A revision or an owner that does not exist is a NotFound error of the API.
func (u *Upgrader) Fix(ctx context.Context, revision types.NamespacedName, c Correction) (written bool, err error) {
	err = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		for attempt := 1; ; attempt++ {
			written, err = u.fixOnce(ctx, revision, c)
			if !apierrors.IsConflict(err) || attempt == prepareAttempts {
				return err
			}
		}
	})
	return written, forbidden(err)
}

func (u *Upgrader) fixOnce(ctx context.Context, key types.NamespacedName, c Correction) (bool, error) {
	r, err := u.client.Revision(ctx, key.Namespace, key.Name)
	if err != nil {
		return false, err
	}
	if r == nil {
		return false, apierrors.NewNotFound(cluster.Revisions.GroupResource(), key.Name)
	}
	if _, err := u.family.Decode(r, reference.ExpectedType{}); errors.Is(err, ErrNotInFamily) {
		return false, fmt.Errorf("controllerrevision %s: %w", key, err)
	}
	corrected := r.DeepCopy()
	for label, value := range c.Labels {
		metav1.SetMetaDataLabel(&corrected.ObjectMeta, label, value)
	}
	if c.Owner != (reference.Owner{}) {
		owner, err := u.owner(ctx, key.Namespace, c.Owner)
		if err != nil {
			return false, err
		}
		corrected.OwnerReferences = slices.DeleteFunc(corrected.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.UID == owner.UID || o.Controller != nil && *o.Controller
		})
		corrected.OwnerReferences = append(corrected.OwnerReferences, *owner)
	}
	if equality.Semantic.DeepEqual(r.ObjectMeta, corrected.ObjectMeta) {
		return false, nil
	}
	if _, err := u.client.Update(ctx, corrected); err != nil {
		return false, fmt.Errorf("write controllerrevision %s: %w", key, err)
	}
	return true, nil
}

// owner reads an object that is to be a controller.
func (u *Upgrader) owner(ctx context.Context, namespace string, o reference.Owner) (*metav1.OwnerReference, error) {
	known := u.family.Describe().Owners
	at := slices.IndexFunc(known, func(one OwnerType) bool { return one.Kind == o.Kind })
	if at < 0 {
		return nil, fmt.Errorf("objects of kind %s own no revisions of the family %s", o.Kind, u.family.Describe().Name)
	}
	resource := known[at].groupResource()
	version, err := u.client.Discovery().Served(ctx, resource, known[at].Versions)
	if err != nil {
		return nil, err
	}
	if version == "" {
		return nil, apierrors.NewNotFound(resource, o.Name)
	}
	live, err := u.client.Get(ctx, resource.WithVersion(version), namespace, o.Name)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return nil, apierrors.NewNotFound(resource, o.Name)
	}
	return metav1.NewControllerRef(live, live.GroupVersionKind()), nil
}

// CRDs of all stored kinds, as the API server has them. Where none
// is found, the software that the family belongs to is not installed.
func (u *Upgrader) CRDs(ctx context.Context) (map[schema.GroupResource]CRD, error) {
	resources := u.family.Describe().Resources
	crds, errs := make([]CRD, len(resources)), make([]error, len(resources))
	var reads sync.WaitGroup
	for i, r := range resources {
		reads.Go(func() {
			errs[i] = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
				crd, err := u.client.CRD(ctx, r)
				crds[i] = crdOf(crd)
				return err
			})
		})
	}
	reads.Wait()
	all := map[schema.GroupResource]CRD{}
	for i, r := range resources {
		if errs[i] != nil {
			return nil, forbidden(errs[i])
		}
		all[r] = crds[i]
	}
	return all, nil
}
