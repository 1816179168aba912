package preflight

import (
	"context"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// sampledPages of metadata are read in search of namespaces: most resources have fewer
	// objects than these hold, and then every namespace is known.
	sampledPages = 6

	// visitedNamespaces bounds the namespaces whose first object is listed, with one small
	// request each, if the pages ended within a big namespace.
	visitedNamespaces = 50

	// sampleAttempts bounds the attempts of a list, for a server under load.
	sampleAttempts = 2

	// sampledNamespaces is how many are tried; the rest is counted.
	sampledNamespaces = 20
)

// samples are the first object of each of the first namespaces.
type samples struct {
	objects []*metav1.PartialObjectMetadata
	// seen has the namespaces that were read, and whether they have an object that is still to be
	// written. It has more namespaces than there are samples if there are many namespaces.
	seen    map[string]bool
	allSeen bool
}

// sample finds objects in two ways, each of them bounded. It lists a resource with few objects
// completely, which finds every namespace. If the first pages have few namespaces, it lists
// namespace by namespace, if the user may list namespaces.
func sample(ctx context.Context, t storageversion.PreflightTarget) (*samples, error) {
	s := &samples{seen: map[string]bool{}}
	if err := s.readPages(ctx, t); err != nil || s.allSeen || s.full() || kube.ClusterScoped(t.Facts.CRD) {
		return s, err
	}
	return s, s.readNamespaces(ctx, t)
}

func (s *samples) readPages(ctx context.Context, t storageversion.PreflightTarget) error {
	pages := 0
	for page, err := range listing.Lister(t.Client.Objects).Objects(ctx, kube.ResourceOf(t.Facts.CRD), walk.ListOptions{PageObjects: t.PageObjects, Attempts: sampleAttempts}) {
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			s.add(t.Facts, t.Policy, o)
		}
		s.allSeen = page.Remaining == 0 || kube.ClusterScoped(t.Facts.CRD) && s.seen[""]
		if pages++; pages == sampledPages || s.allSeen {
			break
		}
	}
	return nil
}

func (s *samples) readNamespaces(ctx context.Context, t storageversion.PreflightTarget) error {
	list, err := namespaces(ctx, t.Client, walk.DefaultPageObjects)
	if apierrors.IsForbidden(err) {
		return nil // only the pages show namespaces then
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
		first, err := firstIn(ctx, t.Client, kube.ResourceOf(t.Facts.CRD), list.Items[i].Name)
		if err != nil {
			return err
		}
		for j := range first.Items {
			s.add(t.Facts, t.Policy, &first.Items[j])
		}
	}
	s.allSeen = list.Continue == ""
	return nil
}

// add adds an object if it is the first of its namespace that a run would write. An object that
// needs no write says nothing about the run.
func (s *samples) add(f decision.Facts, p decision.Policy, o *metav1.PartialObjectMetadata) {
	if s.seen[o.Namespace] {
		return
	}
	pending := !f.Done(p, o)
	if s.seen[o.Namespace] = pending; pending && !s.full() {
		s.objects = append(s.objects, o)
	}
}

func (s *samples) full() bool { return len(s.objects) == sampledNamespaces }

// namespaces counts the namespaces with objects to write.
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

// firstIn lists one object of a namespace.
func firstIn(ctx context.Context, c *kube.Client, r schema.GroupVersionResource, namespace string) (*metav1.PartialObjectMetadataList, error) {
	return kube.MetadataList(ctx, c.Get().AbsPath(kube.CollectionPath(r, namespace)...).Param("limit", "1"))
}

// namespaces lists the first namespaces.
func namespaces(ctx context.Context, c *kube.Client, limit int64) (*metav1.PartialObjectMetadataList, error) {
	return kube.MetadataList(ctx, c.Get().AbsPath("api", "v1", "namespaces").Param("limit", strconv.FormatInt(limit, 10)))
}
