package revision

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/walk"
)

// fieldManager names our writes where the server records them.
const fieldManager = "godwit"

var controllerRevisions = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")

// client is every request this package makes. It decides nothing and never
// retries.
type client struct {
	rest rest.Interface
	// stored reads and writes single revisions in protobuf, see controllerrevision.go.
	stored rest.Interface
}

func newClient(cfg *rest.Config, limiter *walk.Limiter) (*client, error) {
	cfg = limiter.Config(cfg)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // a refusal is a Status, and says why
	if err := appsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.ContentType = runtime.ContentTypeJSON
	r, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/apis", &appsv1.SchemeGroupVersion
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	stored, err := rest.RESTClientFor(cfg)
	return &client{rest: r, stored: stored}, err
}

func path(r schema.GroupVersionResource, namespace string, more ...string) []string {
	all := []string{"apis", r.Group, r.Version}
	if namespace != "" {
		all = append(all, "namespaces", namespace)
	}
	return append(append(all, r.Resource), more...)
}

// ask sends a request without client-go's hidden retries, and decodes the answer.
func ask(ctx context.Context, r *rest.Request, into any) error {
	result := r.SetHeader("Accept", runtime.ContentTypeJSON).MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	if l, ok := into.(interface{ decode([]byte) error }); ok {
		return l.decode(body)
	}
	return json.Unmarshal(body, into)
}

// list is a page of objects of any kind.
type list[T any] struct {
	metav1.ListMeta
	Items []T
}

// decode reads item by item. Whoever may create a revision can nest its data as deep
// as JSON is read at all, and then a list of it, two levels deeper, can't be read as a
// whole: one revision would hide all others.
func (l *list[T]) decode(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "metadata":
			err = d.Decode(&l.ListMeta)
		case "items":
			err = l.decodeItems(d)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *list[T]) decodeItems(d *json.Decoder) error {
	if begin, err := d.Token(); err != nil || begin == nil { // null is an empty list
		return err
	}
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return err
		}
		l.Items = append(l.Items, item)
	}
	_, err := d.Token()
	return err
}

// pages lists a resource, in one namespace or in all of them.
func pages[T any](ctx context.Context, c *client, r schema.GroupVersionResource, namespace string) walk.Source[T] {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[T], string, error) {
		req := c.rest.Get().AbsPath(path(r, namespace)...).Param("limit", strconv.FormatInt(limit, 10))
		if token != "" {
			req.Param("continue", token)
		}
		var l list[T]
		if err := ask(ctx, req, &l); err != nil {
			return walk.Page[T]{}, "", fmt.Errorf("list %s: %w", r.GroupResource(), err)
		}
		return walk.Page[T]{Items: l.Items, ResourceVersion: l.ResourceVersion, Remaining: -1}, l.Continue, nil
	}
	return walk.List(ctx, fetch, walk.ListOptions{})
}

// served finds the version at which a resource is to be read; empty where the cluster
// has no such resource. One that exists and can't be read is an error: what nobody
// looks into may hold a reference.
func (c *client) served(ctx context.Context, r schema.GroupResource, versions []string) (string, error) {
	var group metav1.APIGroup
	err := ask(ctx, c.rest.Get().AbsPath("apis", r.Group), &group)
	if apierrors.IsNotFound(err) {
		return "", c.unserved(ctx, r, versions)
	}
	if err != nil {
		return "", fmt.Errorf("read discovery of group %s: %w", r.Group, err)
	}
	for _, v := range versions {
		if !slices.ContainsFunc(group.Versions, func(g metav1.GroupVersionForDiscovery) bool { return g.Version == v }) {
			continue
		}
		var resources metav1.APIResourceList
		if err := ask(ctx, c.rest.Get().AbsPath("apis", r.Group, v), &resources); err != nil {
			return "", fmt.Errorf("read discovery of %s/%s: %w", r.Group, v, err)
		}
		if slices.ContainsFunc(resources.APIResources, func(one metav1.APIResource) bool { return one.Name == r.Resource }) {
			return v, nil
		}
	}
	return "", c.unserved(ctx, r, versions)
}

// unserved is an error where a resource is defined after all.
func (c *client) unserved(ctx context.Context, r schema.GroupResource, versions []string) error {
	if r.Group == appsv1.GroupName {
		return fmt.Errorf("read discovery of %s: it serves none of %v", r, versions)
	}
	d, err := c.crd(ctx, r)
	if err != nil || !d.Found {
		return err
	}
	return fmt.Errorf("read discovery of %s: the customresourcedefinition serves %v, and none of the versions that are known: %v; what refers to revisions there can't be seen", r, d.ServedVersions, versions)
}

func (c *client) crd(ctx context.Context, r schema.GroupResource) (CRD, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	err := ask(ctx, c.rest.Get().AbsPath("apis", apiextensionsv1.GroupName, "v1", "customresourcedefinitions", r.String()), &crd)
	if apierrors.IsNotFound(err) {
		return CRD{}, nil
	}
	if err != nil {
		return CRD{}, fmt.Errorf("read customresourcedefinition %s: %w", r, err)
	}
	d := CRD{Found: true, StoredVersions: crd.Status.StoredVersions}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			d.StorageVersion = v.Name
		}
		if v.Served {
			d.ServedVersions = append(d.ServedVersions, v.Name)
		}
	}
	return d, nil
}

// referrer reads one object that refers to revisions, live; nil if there is none.
func (c *client) referrer(ctx context.Context, h *Referrer) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := ask(ctx, c.rest.Get().AbsPath(path(h.Resource, h.Namespace, h.Name)...), u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", h.Resource.GroupResource(), h.Namespace, h.Name, err)
	}
	return u, nil
}

// find reads one object as it is now, with the permission to list alone; nil if there is
// none.
func (c *client) find(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	var l list[map[string]any]
	err := ask(ctx, c.rest.Get().AbsPath(path(r, namespace)...).Param("fieldSelector", "metadata.name="+name), &l)
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", r.GroupResource(), namespace, name, err)
	}
	if len(l.Items) == 0 {
		return nil, nil
	}
	return &unstructured.Unstructured{Object: l.Items[0]}, nil
}

// namespaceTerminating tells whether a namespace is being deleted, or gone.
func (c *client) namespaceTerminating(ctx context.Context, name string) (bool, error) {
	var namespace metav1.PartialObjectMetadata
	err := ask(ctx, c.rest.Get().AbsPath("api", "v1", "namespaces", name), &namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// patch writes an object that refers to revisions, as it was read, and returns its
// resourceVersion. A merge patch that carries the resourceVersion is answered with
// a conflict whenever the object moved; a JSON patch would be refused as invalid
// where a place is gone, which is no different from an object that is invalid.
func (c *client) patch(ctx context.Context, h *Referrer, subresource string, body []byte) (string, error) {
	target := path(h.Resource, h.Namespace, h.Name)
	if subresource != "" {
		target = append(target, subresource)
	}
	var patched metav1.PartialObjectMetadata
	err := ask(ctx, c.rest.Patch(types.MergePatchType).AbsPath(target...).Param("fieldManager", fieldManager).Body(body), &patched)
	return patched.ResourceVersion, err
}

// conflict reports whether an error says that an object is not as it was read.
func conflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }
