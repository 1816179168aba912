package revision

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/walk"
)

// ReferenceIndex is who refers to which revision in one namespace, as one scan found it.
// It is complete: a list that the API server refuses makes no census.
type ReferenceIndex struct {
	Namespace string
	// references by the name of the revision, those that don't count among them.
	references      map[string][]Reference
	referrers       map[types.UID]*Referrer
	owners          map[ownerKey]*Referrer  // what counterparts may be for
	controlledInUse map[types.UID]*Referrer // one that runs or is not ready, by its controller
	readers         map[Owner]*Referrer     // by what they may be about to read the revisions of
	filtered        bool                    // not every holder was asked for
	scanned         map[schema.GroupResource]bool
}

// ownerKey names an object of the census's namespace.
type ownerKey struct {
	resource schema.GroupResource
	name     string
}

func newReferenceIndex(namespace string) *ReferenceIndex {
	return &ReferenceIndex{
		Namespace: namespace, references: map[string][]Reference{}, referrers: map[types.UID]*Referrer{},
		owners: map[ownerKey]*Referrer{}, controlledInUse: map[types.UID]*Referrer{}, readers: map[Owner]*Referrer{},
	}
}

// Of are the references to a revision that count. What a fixed place of a revision
// says counts while the controller of that revision runs, and an implied reference while
// the object is there that a restore would look the revision up for.
func (c *ReferenceIndex) Of(revision string) []Reference {
	var all []Reference
	for _, r := range c.references[revision] {
		if r.Fixed && !c.startedBy(r.Referrer) || r.ImpliedBy != "" && c.restoreTarget(r) == nil {
			continue
		}
		all = append(all, r)
	}
	return all
}

// startedBy reports whether the controller of a revision with fixed places runs. One that
// would have been found, and was not, is gone.
func (c *ReferenceIndex) startedBy(h *Referrer) bool {
	by := c.referrers[h.Controller]
	if by == nil {
		return !c.scanned[h.controllerResource]
	}
	return by.Running
}

// restoreTarget is the object that the counterpart of a reference is looked up for; nil where
// there is none to restore onto.
func (c *ReferenceIndex) restoreTarget(r Reference) *Referrer {
	if r.Counterpart == nil {
		return nil
	}
	h := c.owners[ownerKey{r.Counterpart.Resource, r.Counterpart.Owner}]
	if h == nil || h.Terminating {
		return nil
	}
	return h
}

// selected tells whether a revision is in scope: one of those that refer to it is
// or, where none does, its controller. A copy goes with what it was copied of, and not
// the other way round.
func (c *ReferenceIndex) selected(r metav1.Object, references []Reference) bool {
	if len(references) > 0 {
		return slices.ContainsFunc(references, func(r Reference) bool {
			owner := c.restoreTarget(r)
			return r.Referrer.Selected && r.ImpliedBy == "" || owner != nil && owner.Selected
		})
	}
	owner := metav1.GetControllerOfNoCopy(r)
	if owner == nil || c.referrers[owner.UID] == nil {
		return !c.filtered
	}
	return c.referrers[owner.UID].Selected
}

// ownerGone tells whether a revision's controller would have been found, and was not.
func (c *ReferenceIndex) ownerGone(r metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(r)
	if owner == nil || c.referrers[owner.UID] != nil {
		return false
	}
	return c.scanned[resourceOf(owner)]
}

func resourceOf(owner *metav1.OwnerReference) schema.GroupResource {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	return resource.GroupResource()
}

func (c *ReferenceIndex) add(h *Referrer, references []Reference) {
	if h.UID != "" {
		c.referrers[h.UID] = h
	}
	if resource := h.Resource.GroupResource(); resource != controllerRevisions.GroupResource() {
		c.owners[ownerKey{resource, h.Name}] = h
	}
	c.linkOwned(h)
	for _, o := range h.reads {
		c.readers[o] = h
	}
	for _, r := range references {
		r.Referrer = h
		c.references[r.Revision] = append(c.references[r.Revision], r)
		if implied, is := r.implied(); is {
			c.references[implied.Revision] = append(c.references[implied.Revision], implied)
		}
	}
}

// linkOwned tells a controller of an object that is not to be disturbed, whichever of the two
// is seen first.
func (c *ReferenceIndex) linkOwned(h *Referrer) {
	h.owned = c.controlledInUse[h.UID]
	if h.Controller == "" || !h.Running && h.NotReady == "" || c.controlledInUse[h.Controller] != nil {
		return
	}
	c.controlledInUse[h.Controller] = h
	if by := c.referrers[h.Controller]; by != nil {
		by.owned = h
	}
}

// implied is the reference to the counterpart.
func (r Reference) implied() (Reference, bool) {
	if r.Counterpart == nil {
		return Reference{}, false
	}
	r.ImpliedBy, r.Revision = r.Revision, r.Counterpart.Revision(r.Revision)
	return r, r.ImpliedBy != r.Revision
}

// explicit are the references without those that are implied: the places that name the
// revision.
func explicit(references []Reference) []Reference {
	return slices.DeleteFunc(slices.Clone(references), func(r Reference) bool { return r.ImpliedBy != "" })
}

// writable are those among them that can be written.
func (r Reference) writable() bool { return !r.Fixed && r.ImpliedBy == "" }

// referrerSource is a referrer at the version that the cluster serves.
type referrerSource struct {
	ReferrerType
	resource schema.GroupVersionResource
}

// sources leaves out what the cluster does not have.
func (c *client) sources(ctx context.Context, d Description) ([]referrerSource, error) {
	var all []referrerSource
	for _, r := range slices.Concat(d.Referrers, d.Readers) {
		version, err := c.served(ctx, r.Resource, r.Versions)
		if err != nil {
			return nil, err
		}
		if version != "" {
			all = append(all, referrerSource{ReferrerType: r, resource: r.Resource.WithVersion(version)})
		}
	}
	return all, nil
}

// read finds what an object holds.
func (s referrerSource) read(u *unstructured.Unstructured) (*Referrer, []Reference) {
	holding := s.Read(u)
	h := &Referrer{
		Resource: s.resource, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Running: holding.Running, NotReady: holding.NotReady,
		Terminating: u.GetDeletionTimestamp() != nil,
		reads:       holding.Reads,
	}
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		h.Controller, h.controllerResource = owner.UID, resourceOf(owner)
	}
	return h, holding.References
}

// reread reads an object that refers to revisions, live; nil if it is gone, or another one
// of its name.
func (c *client) reread(ctx context.Context, sources []referrerSource, h *Referrer) (*Referrer, []Reference, error) {
	u, err := c.referrer(ctx, h)
	if err != nil || u == nil || u.GetUID() != h.UID {
		return nil, nil, err
	}
	for _, s := range sources {
		if s.resource == h.Resource {
			now, all := s.read(u)
			return now, all, nil
		}
	}
	return nil, nil, nil
}

// indexes scans a namespace, or all of them, and yields one census for each
// namespace that has something in it. All lists are read side by side: each is in
// the order of the namespaces, so that one namespace is in memory at a time,
// however many there are, and each list is read once. Every revision is shown to
// see, after all references of its namespace are known; its data is kept by nobody
// else.
func (c *client) indexes(ctx context.Context, s scan, see func(*ReferenceIndex, *appsv1.ControllerRevision)) iter.Seq2[*ReferenceIndex, error] {
	return func(yield func(*ReferenceIndex, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		streams := s.streams(ctx, c, see)
		defer func() {
			for _, s := range streams {
				s.stop()
			}
		}()
		scanned := map[schema.GroupResource]bool{}
		for _, one := range s.sources {
			scanned[one.Resource] = true
		}
		for last := ""; ; {
			next, found := earliest(streams)
			census := newReferenceIndex(next)
			census.filtered, census.scanned = s.selector != nil, scanned
			for _, one := range streams {
				if err := one.take(census); err != nil {
					yield(nil, err)
					return
				}
			}
			switch {
			case !found:
				return
			case last != "" && order(next) <= order(last):
				yield(nil, fmt.Errorf("the API server lists namespace %s after %s: its lists can't be read side by side", next, last))
				return
			case !yield(census, nil):
				return
			}
			last = next
		}
	}
}

// scan is what to look at.
type scan struct {
	sources   []referrerSource
	namespace string          // empty: all
	selector  labels.Selector // of holders that are asked for; nil: all
}

// streams end with the revisions, if anybody wants to see them.
func (s scan) streams(ctx context.Context, c *client, see func(*ReferenceIndex, *appsv1.ControllerRevision)) []*stream {
	var all []*stream
	for _, one := range s.sources {
		all = append(all, referrersOf(one, s.selector, pages[map[string]any](ctx, c, one.resource, s.namespace)))
	}
	if see == nil {
		return all
	}
	return append(all, objectsOf(pages[*appsv1.ControllerRevision](ctx, c, controllerRevisions, s.namespace), func(r *appsv1.ControllerRevision) object {
		return object{r.Namespace, func(c *ReferenceIndex) { see(c, r) }}
	}))
}

func earliest(streams []*stream) (namespace string, found bool) {
	for _, s := range streams {
		if n, ok := s.namespace(); ok && (!found || order(n) < order(namespace)) {
			namespace, found = n, true
		}
	}
	return namespace, found
}

// order is how namespaces follow each other in the API server's lists: as parts of
// keys, where a slash ends them.
func order(namespace string) string { return namespace + "/" }

// stream is one list, object by object.
type stream struct {
	pull func() (object, error, bool)
	stop func()
	head object
	err  error
	ok   bool // head is one
}

// object is what a list yields: where it is, and what it adds to a census.
type object struct {
	namespace string
	add       func(*ReferenceIndex)
}

func newStream(objects iter.Seq2[object, error]) *stream {
	s := &stream{}
	s.pull, s.stop = iter.Pull2(objects)
	s.advance()
	return s
}

func (s *stream) advance() {
	s.head, s.err, s.ok = s.pull()
}

// namespace of the next object, if there is one.
func (s *stream) namespace() (string, bool) { return s.head.namespace, s.ok && s.err == nil }

// take adds every object of the census's namespace.
func (s *stream) take(c *ReferenceIndex) error {
	for s.ok && s.err == nil && s.head.namespace == c.Namespace {
		s.head.add(c)
		s.advance()
	}
	return s.err
}

func objectsOf[T any](pages walk.Source[T], read func(T) object) *stream {
	return newStream(func(yield func(object, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(object{}, err)
				return
			}
			for _, item := range page.Items {
				if !yield(read(item), nil) {
					return
				}
			}
		}
	})
}

func referrersOf(s referrerSource, selector labels.Selector, pages walk.Source[map[string]any]) *stream {
	return objectsOf(pages, func(content map[string]any) object {
		u := &unstructured.Unstructured{Object: content}
		if u.GetKind() == "" { // items of a list of a built-in kind don't say
			u.SetKind(kindOf(s.resource.Resource))
		}
		h, references := s.read(u)
		h.Selected = selector == nil || selector.Matches(labels.Set(u.GetLabels()))
		return object{h.Namespace, func(c *ReferenceIndex) { c.add(h, references) }}
	})
}

// kindOf is for messages alone, and only of ControllerRevisions, which are the one
// built-in kind that refers to revisions.
func kindOf(resource string) string {
	if resource == controllerRevisions.Resource {
		return "ControllerRevision"
	}
	return strings.TrimSuffix(resource, "s")
}
