package refindex

import (
	"context"
	"fmt"
	"iter"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/walk"
)

// Source is a type of referrers at the version that the cluster serves.
type Source struct {
	reference.Type
	Served schema.GroupVersionResource
}

// Served are the types that the cluster serves. Discovery is asked about all of them at once.
func Served(ctx context.Context, c *cluster.Client, known []reference.Type) ([]Source, error) {
	versions, errs := make([]string, len(known)), make([]error, len(known))
	discovery := c.Discovery()
	var all sync.WaitGroup
	for i, r := range known {
		all.Go(func() { versions[i], errs[i] = discovery.Served(ctx, r.Resource, r.Versions) })
	}
	all.Wait()
	var served []Source
	for i, r := range known {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if versions[i] != "" {
			served = append(served, Source{Type: r, Served: r.Resource.WithVersion(versions[i])})
		}
	}
	return served, nil
}

// Find finds the references of an object.
func (s Source) Find(u *unstructured.Unstructured) (*reference.Referrer, []reference.Reference) {
	usage := s.Read(u)
	r := &reference.Referrer{
		Resource: s.Served, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Running: usage.Running, NotReady: usage.NotReady,
		Terminating: u.GetDeletionTimestamp() != nil,
		Reads:       usage.Reads,
	}
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		r.Controller, r.ControllerResource = owner.UID, resourceOf(owner)
	}
	return r, usage.References
}

// Reread reads a referrer live; nil if it is gone, or another object has its name.
func Reread(ctx context.Context, c *cluster.Client, types []Source, r *reference.Referrer) (*reference.Referrer, []reference.Reference, error) {
	u, err := c.Get(ctx, r.Resource, r.Namespace, r.Name)
	if err != nil || u == nil || u.GetUID() != r.UID {
		return nil, nil, err
	}
	for _, s := range types {
		if s.Served == r.Resource {
			now, all := s.Find(u)
			return now, all, nil
		}
	}
	return nil, nil, nil
}

// Scope selects what to scan.
type Scope struct {
	Types     []Source
	Namespace string          // empty: all
	Selector  labels.Selector // of the referrers in scope; nil: all
}

// Scan scans a namespace, or all of them, and yields one index for each namespace that has
// something in it. All lists are read side by side: each is in the order of the namespaces, so
// that one namespace is in memory at a time, however many there are, and each list is read
// once. Each revision is passed to see when all references of its namespace are known; only
// see keeps its data.
func Scan(ctx context.Context, c *cluster.Client, s Scope, see func(*Index, *appsv1.ControllerRevision)) iter.Seq2[*Index, error] {
	return func(yield func(*Index, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		streams := s.streams(ctx, c, see)
		defer func() {
			for _, s := range streams {
				s.stop()
			}
		}()
		referrers := len(streams)
		if see != nil {
			referrers-- // a revision that is deleted before its list is no revision to upgrade
		}
		begin(streams[:referrers])
		begin(streams[referrers:])
		scanned := map[schema.GroupResource]bool{}
		for _, one := range s.Types {
			scanned[one.Resource] = true
		}
		for last := ""; ; {
			next, found := earliest(streams)
			index := New(next)
			index.filtered, index.scanned = s.Selector != nil, scanned
			for _, one := range streams {
				if err := one.take(index); err != nil {
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
			case !yield(index, nil):
				return
			}
			last = next
		}
	}
}

// streams end with the revisions, unless see is nil.
func (s Scope) streams(ctx context.Context, c *cluster.Client, see func(*Index, *appsv1.ControllerRevision)) []*stream {
	var all []*stream
	for _, one := range s.Types {
		if one.Served == cluster.Revisions {
			all = append(all, newStream(cluster.RevisionPages(ctx, c, s.Namespace, 0, func(r *appsv1.ControllerRevision) (entry, error) {
				if one.Mentions != nil && !one.Mentions(r.Data.Raw) {
					return entry{r.Namespace, func(*Index) {}}, nil
				}
				u, err := unstructuredRevision(r)
				return s.entryOf(one, u), err
			})))
			continue
		}
		all = append(all, newStream(cluster.Pages(ctx, c, one.Served, s.Namespace, func(content map[string]any) entry {
			return s.entryOf(one, &unstructured.Unstructured{Object: content})
		})))
	}
	if see == nil {
		return all
	}
	return append(all, newStream(cluster.RevisionPages(ctx, c, s.Namespace, 0, func(r *appsv1.ControllerRevision) (entry, error) {
		return entry{r.Namespace, func(x *Index) { see(x, r) }}, nil
	})))
}

// entryOf is what one object adds to an index.
func (s Scope) entryOf(t Source, u *unstructured.Unstructured) entry {
	if u == nil {
		return entry{}
	}
	r, references := t.Find(u)
	r.Selected = s.Selector == nil || s.Selector.Matches(labels.Set(u.GetLabels()))
	return entry{r.Namespace, func(x *Index) { x.add(r, references) }}
}

// unstructuredRevision is a revision with its data decoded. What is
// nested as deep as JSON is read at all is read here, since the data are decoded alone.
func unstructuredRevision(r *appsv1.ControllerRevision) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(appsv1.SchemeGroupVersion.String())
	u.SetKind("ControllerRevision")
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	u.SetUID(r.UID)
	u.SetResourceVersion(r.ResourceVersion)
	u.SetLabels(r.Labels)
	u.SetOwnerReferences(r.OwnerReferences)
	u.SetDeletionTimestamp(r.DeletionTimestamp)
	if len(r.Data.Raw) == 0 {
		return u, nil
	}
	var data any
	if err := utiljson.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("decode controllerrevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	u.Object["data"] = data
	return u, nil
}

// begin reads the first page of each of some lists, all at once.
func begin(streams []*stream) {
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(s.advance)
	}
	all.Wait()
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
	pull func() (entry, error, bool)
	stop func()
	head entry
	err  error
	ok   bool // head is one
}

// entry is one object of a list: where it is, and what it adds to an index.
type entry struct {
	namespace string
	add       func(*Index)
}

func newStream(pages walk.Source[entry]) *stream {
	s := &stream{}
	s.pull, s.stop = iter.Pull2(func(yield func(entry, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(entry{}, err)
				return
			}
			for _, one := range page.Items {
				if !yield(one, nil) {
					return
				}
			}
		}
	})
	return s
}

func (s *stream) advance() { s.head, s.err, s.ok = s.pull() }

// namespace of the next object, if there is one.
func (s *stream) namespace() (string, bool) { return s.head.namespace, s.ok && s.err == nil }

// take adds each object of the index's namespace.
func (s *stream) take(x *Index) error {
	for s.ok && s.err == nil && s.head.namespace == x.Namespace {
		s.head.add(x)
		s.advance()
	}
	return s.err
}
