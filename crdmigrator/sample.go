package crdmigrator

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// sampledPages of metadata are read in search of namespaces: most resources
	// have fewer objects than these hold, and then every namespace is known.
	sampledPages = 4

	// visitedNamespaces is how many namespaces are asked for their first object,
	// at one small request each, where the pages ended within a big one.
	visitedNamespaces = 50

	// sampleTries is for a list that meets a loaded server.
	sampleTries = 2
)

// samples are the first object of each of the first namespaces.
type samples struct {
	objects []*metav1.PartialObjectMetadata
	// seen namespaces, and whether they have an object that is still to be
	// written; more than there are objects where they are many.
	seen    map[string]bool
	allSeen bool
}

// sample looks for objects in two ways, each of them bounded: a resource with
// few objects is read through, which finds every namespace; one whose first
// pages are full of few namespaces is asked namespace by namespace, if these may
// be listed.
func (m *Migrator) sample(ctx context.Context, f Facts) (*samples, error) {
	s := &samples{seen: map[string]bool{}}
	if err := m.samplePages(ctx, f, s); err != nil || s.allSeen || s.full() || kube.ClusterScoped(f.CRD) {
		return s, err
	}
	return s, m.sampleNamespaces(ctx, f, s)
}

func (m *Migrator) samplePages(ctx context.Context, f Facts, s *samples) error {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
		return m.list.page(ctx, kube.ResourceOf(f.CRD), limit, token)
	}
	pages := 0
	for page, err := range walk.List(ctx, fetch, walk.ListOptions{PageObjects: m.options.PageObjects, Attempts: sampleTries}) {
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			s.see(f, m.options.Policy, o)
		}
		s.allSeen = page.Remaining == 0 || kube.ClusterScoped(f.CRD) && s.seen[""]
		if pages++; pages == sampledPages || s.allSeen {
			break
		}
	}
	return nil
}

func (m *Migrator) sampleNamespaces(ctx context.Context, f Facts, s *samples) error {
	list, err := m.client.namespaces(ctx, walk.DefaultPageObjects)
	if apierrors.IsForbidden(err) {
		return nil // what the pages have shown is what there is to tell
	}
	if err != nil {
		return err
	}
	visited := 0
	for i := range list.Items {
		if _, known := s.seen[list.Items[i].Name]; known {
			continue
		}
		if visited++; visited > visitedNamespaces || s.full() {
			return nil
		}
		first, err := m.client.firstIn(ctx, kube.ResourceOf(f.CRD), list.Items[i].Name)
		if err != nil {
			return err
		}
		for j := range first.Items {
			s.see(f, m.options.Policy, &first.Items[j])
		}
	}
	s.allSeen = list.Continue == ""
	return nil
}

// see takes an object if it is the first of its namespace that a run would
// write: one that is done says nothing about the run.
func (s *samples) see(f Facts, p Policy, o *metav1.PartialObjectMetadata) {
	if s.seen[o.Namespace] {
		return
	}
	pending := !f.Checkpoint.done(f.CRD, p, o)
	if s.seen[o.Namespace] = pending; pending && !s.full() {
		s.objects = append(s.objects, o)
	}
}

func (s *samples) full() bool { return len(s.objects) == sampledNamespaces }

// namespaces counts those with something to write.
func (s *samples) namespaces(crd *apiextensionsv1.CustomResourceDefinition) int {
	if kube.ClusterScoped(crd) {
		return 0
	}
	n := 0
	for _, pending := range s.seen {
		if pending {
			n++
		}
	}
	return n
}

// done: a run that resumes from the checkpoint would not write the object. What
// can't be compared is not done.
func (c Checkpoint) done(crd *apiextensionsv1.CustomResourceDefinition, p Policy, o *metav1.PartialObjectMetadata) bool {
	if !c.holds(crd, p) {
		return false
	}
	if c.Cursor != "" && walk.Key(o) <= c.Cursor {
		return true
	}
	done, err := newer(o.ResourceVersion, c.ResourceVersion)
	return done && err == nil
}
