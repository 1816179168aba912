package ownerreference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// listsAtOnce bounds the lists under way. The objects of one resource are listed page after page.
const listsAtOnce = 4

// ignored are the resources that the garbage collector ignores, too: Events own nothing and are many.
var ignored = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}}

// Scanner reads all objects of a cluster that may have owners. It is safe for concurrent use.
type Scanner struct {
	client  *request.Client
	limiter *walk.Limiter
}

// NewScanner returns a scanner of the cluster of cfg. Limits and retries of cfg do not apply. A nil limiter means one of its
// own, with the default limits.
func NewScanner(cfg *rest.Config, limiter *walk.Limiter) (*Scanner, error) {
	if limiter == nil {
		limiter = walk.NewLimiter(walk.Limits{})
	}
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // otherwise the list of each deprecated resource prints a warning
	c, err := request.New(cfg, limiter, clock.RealClock{})
	return &Scanner{client: c, limiter: limiter}, err
}

// Unread says why a resource was not listed, or a version of an API group not discovered.
type Unread struct {
	// Resource is a resource, as "secrets" or "widgets.example.com", or a group and a version, as "metrics.k8s.io/v1beta1".
	Resource string
	// Finding has a reason of package storageversion.
	godwit.Finding
	// Alone means that the fault is of these objects alone: their conversion webhook or the server of their API group does not
	// answer. Other objects can be read.
	Alone bool
}

// Of reports whether these are objects of a CRD, or the API group of the CRD.
func (u Unread) Of(crd schema.GroupResource) bool {
	gv, err := schema.ParseGroupVersion(u.Resource)
	return u.Resource == crd.String() || err == nil && gv.Group == crd.Group
}

// Scan is what a scan has read so far, or read in all.
type Scan struct {
	// Resources counts the resources to list, and Listed those that were listed, or could not be.
	Resources, Listed int
	// Objects counts the objects whose metadata was read.
	Objects int64
	// Discovered are the resources to list, each at the version that the API server prefers.
	Discovered []schema.GroupVersionResource
	// Unread are the resources that were not listed.
	Unread []Unread
}

// Visit takes one object of a scan. It must be quick. An object that is served by several API groups is visited several times.
type Visit func(schema.GroupVersionResource, *metav1.PartialObjectMetadata)

// Each lists the metadata of all objects that the garbage collector knows. Calls of visit and progress do not overlap.
// progress may be nil. A resource that can't be listed is in Unread of the result; it is not an error.
func (s *Scanner) Each(ctx context.Context, visit Visit, progress func(Scan)) (Scan, error) {
	resources, unread, err := s.resources(ctx)
	if err != nil {
		return Scan{}, err
	}
	parent := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	scan := Scan{Resources: len(resources), Discovered: resources, Unread: unread}
	page := func(r schema.GroupVersionResource, objects []*metav1.PartialObjectMetadata) {
		mu.Lock()
		defer mu.Unlock()
		for _, o := range objects {
			visit(r, o)
		}
		if scan.Objects += int64(len(objects)); progress != nil {
			progress(scan)
		}
	}
	var failed error
	next := make(chan schema.GroupVersionResource)
	var listers sync.WaitGroup
	for range min(listsAtOnce, len(resources)) {
		listers.Go(func() {
			for r := range next {
				why, err := s.list(ctx, r, page)
				mu.Lock()
				scan.Listed++
				if why != nil {
					scan.Unread = append(scan.Unread, *why)
				}
				failed = errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					stop() // the API server does not answer
				}
			}
		})
	}
	for _, r := range resources {
		if ctx.Err() != nil {
			break
		}
		next <- r
	}
	close(next)
	listers.Wait()
	if parent.Err() != nil {
		return scan, context.Cause(parent)
	}
	slices.SortFunc(scan.Unread, func(a, b Unread) int { return strings.Compare(a.Resource, b.Resource) })
	return scan, failed
}

// list lists one resource. If the API server refuses the list, it returns why, and not an error.
func (s *Scanner) list(ctx context.Context, r schema.GroupVersionResource, page func(schema.GroupVersionResource, []*metav1.PartialObjectMetadata)) (*Unread, error) {
	for p, err := range s.pages(ctx, r) {
		switch {
		case ctx.Err() != nil:
			return nil, nil //nolint:nilnil // the caller returns the cause
		case apierrors.IsNotFound(err) && !s.discovered(ctx, r):
			return nil, nil //nolint:nilnil // it was removed since it was discovered, with all objects
		case err != nil && !apierror.IsEndOfRun(err) && (apierror.IsAnswer(err) || errors.Is(err, quicklist.ErrOver)):
			return new(UnreadOf(r, err)), nil
		case err != nil:
			return nil, err
		}
		page(r, p.Items)
	}
	return nil, nil //nolint:nilnil // every page was listed
}

// discovered reports whether the API server still has a resource, or does not say.
func (s *Scanner) discovered(ctx context.Context, r schema.GroupVersionResource) bool {
	list := &metav1.APIResourceList{}
	err := kube.Do(ctx, s.client.Get().AbsPath(kube.GroupVersionPath(r.GroupVersion())...)).Into(list)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return slices.ContainsFunc(list.APIResources, func(one metav1.APIResource) bool { return one.Name == r.Resource })
}

func (s *Scanner) pages(ctx context.Context, r schema.GroupVersionResource) walk.Source[*metav1.PartialObjectMetadata] {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
		var list *metav1.PartialObjectMetadataList
		err := quicklist.Attempt(ctx, func(ctx context.Context) (err error) {
			list, err = s.client.Objects(ctx, r, limit, token)
			return err
		})
		if err != nil {
			return walk.Page[*metav1.PartialObjectMetadata]{}, "", fmt.Errorf("list %s: %w", r.GroupResource(), err)
		}
		page := walk.Page[*metav1.PartialObjectMetadata]{ResourceVersion: list.ResourceVersion, Remaining: kube.Remaining(list)}
		for i := range list.Items {
			page.Items = append(page.Items, &list.Items[i])
		}
		return page, list.Continue, nil
	}
	return walk.List(ctx, fetch, walk.ListOptions{Attempts: quicklist.Attempts, Retry: Retry})
}

// Retry is quicklist.Transient, and does not retry a 403: a user who lacks the permission for a hundred resources would wait for each of them.
func Retry(err error) (wait time.Duration, again bool) {
	if apierrors.IsForbidden(err) {
		return 0, false
	}
	return quicklist.Transient(err)
}

// UnreadOf classifies the answer to a list.
func UnreadOf(r schema.GroupVersionResource, err error) Unread {
	answer := apierror.Of(err)
	u := Unread{
		Resource: r.GroupResource().String(), Finding: godwit.Finding{Reason: storageversion.FailureReason(err), Message: quote.Line(answer.Message)},
		Alone: answer.Class == apierror.ConversionUnavailable || answer.Class == apierror.ConversionFailed || answer.Class == apierror.UnreadableObject,
	}
	switch {
	case errors.Is(err, quicklist.ErrOver):
		u.Reason = decision.ReasonTimeout
	case answer.Class == apierror.Refused:
		u.Reason = decision.ReasonListRefused // no object was written
	}
	u.Fix = decision.FixList(u.Reason, r)
	if answer.Class == apierror.Forbidden {
		grant := kube.Grant{Verb: "list", Resource: r.GroupResource()}
		u.Message, u.Fix = fmt.Sprintf("%s may not %s", answer.User, grant), grant.Fix(answer.User)
	}
	return u
}

// resources discovers the resources that the garbage collector knows: those that can be listed, watched and deleted. Each is at
// the version that the API server prefers.
func (s *Scanner) resources(ctx context.Context) ([]schema.GroupVersionResource, []Unread, error) {
	lists, err := discovery.NewDiscoveryClient(s.client).ServerPreferredResources() // the oldest client-go of module 1 takes no context
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	var groups *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &groups) {
		return nil, nil, fmt.Errorf("discover the resources of the API server: %w", err)
	}
	var unread []Unread
	if groups != nil {
		for gv, cause := range groups.Groups {
			unread = append(unread, Unread{
				Resource: gv.String(), Finding: godwit.Finding{Reason: decision.ReasonNotServed, Message: quote.Line(apierror.Message(cause)),
					Fix: decision.FixList(decision.ReasonNotServed, gv.WithResource(""))}, Alone: true,
			})
		}
	}
	var all []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // no client could request it
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			resource := gv.WithResource(r.Name)
			if !strings.Contains(r.Name, "/") && !slices.Contains(ignored, resource.GroupResource()) && collectable(r.Verbs) {
				all = append(all, resource)
			}
		}
	}
	return all, unread, nil
}

func collectable(verbs []string) bool {
	return !slices.ContainsFunc([]string{"list", "watch", "delete"}, func(verb string) bool { return !slices.Contains(verbs, verb) })
}

// OwnersOf reads a CRD again, since its served versions may have changed, and returns its objects as owners.
func (s *Scanner) OwnersOf(ctx context.Context, crd string, scope Scope) (Owners, error) {
	var o Owners
	err := quicklist.Retry(ctx, func(ctx context.Context) error {
		now, err := s.client.CRD(ctx, crd)
		if err == nil {
			o = OwnersOf(now, scope)
		}
		return err
	})
	return o, err
}

// ReadOwners lists the owners of a CRD. It returns why they could not be listed, if so.
func (s *Scanner) ReadOwners(ctx context.Context, o Owners) (Existing, *Unread, error) {
	if o.Resource.Version == "" {
		return nil, &Unread{Resource: o.CRD, Finding: o.unserved}, nil
	}
	existing := Existing{}
	why, err := s.list(ctx, o.Resource, func(_ schema.GroupVersionResource, objects []*metav1.PartialObjectMetadata) {
		for _, one := range objects {
			existing[Identity{UID: one.UID, Namespace: one.Namespace, Name: one.Name}] = struct{}{}
		}
	})
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case why != nil || err != nil:
		return nil, why, err
	}
	return existing, nil, nil
}
