package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/walk"
)

const (
	// FieldManager is the field manager of Godwit's writes.
	FieldManager = "godwit"

	// AcceptMetadata requests an object's metadata only, in protobuf if the server supports it: decoding is a large
	// part of a pass's cost in the client.
	AcceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	// AcceptMetadataList is the same for a list.
	AcceptMetadataList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

// Client sends requests at the pace of a limiter. It never retries.
type Client struct {
	rest.Interface
	// Clock is the API server's.
	Clock *ServerClock
}

// NewClient returns a client for the cluster of cfg. It ignores limits and retries of cfg: the limiter paces, and the
// caller retries.
func NewClient(cfg *rest.Config, limiter *walk.Limiter, local clock.PassiveClock) (*Client, error) {
	c := &Client{Clock: NewServerClock(local)}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return answerLimit{next} }) // below the limiter
	cfg = limiter.Config(cfg)
	cfg.NegotiatedSerializer = codecs.WithoutConversion()
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.Wrap(c.Clock.RoundTripper)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return meter{next} })
	r, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	c.Interface = r
	return c, nil
}

// Do sends a request without client-go's retries: a walk must see every 429 to adapt its
// pace.
func Do(ctx context.Context, r *rest.Request) rest.Result { return r.MaxRetries(0).Do(ctx) }

// Body returns the body of a response, or the server's error. Result.Raw alone would return an error with the message
// "unknown".
func Body(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// Metadata sends a request for an object's metadata only.
func Metadata(ctx context.Context, r *rest.Request) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	err := Do(ctx, r.SetHeader("Accept", AcceptMetadata)).Into(m)
	return m, err
}

// MetadataList sends a request for the metadata of a list of objects.
func MetadataList(ctx context.Context, r *rest.Request) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := Do(ctx, r.SetHeader("Accept", AcceptMetadataList)).Into(list)
	return list, err
}

// CRDPath returns the path of a CustomResourceDefinition, or of one of its subresources.
func CRDPath(name string, subresource ...string) []string {
	return append([]string{"apis", apiextensionsv1.GroupName, "v1", CRDs.Resource, name}, subresource...)
}

// GroupVersionPath returns the path of a version of an API group, or of the core group.
func GroupVersionPath(gv schema.GroupVersion) []string {
	if gv.Group == "" {
		return []string{"api", gv.Version}
	}
	return []string{"apis", gv.Group, gv.Version}
}

// CollectionPath returns the path of the objects in a namespace, or of all objects if the namespace is empty.
func CollectionPath(r schema.GroupVersionResource, namespace string) []string {
	path := GroupVersionPath(r.GroupVersion())
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, r.Resource)
}

// ObjectPath returns the path of one object.
func ObjectPath(r schema.GroupVersionResource, o walk.Object) []string {
	return append(CollectionPath(r, o.GetNamespace()), o.GetName())
}

// CRD reads a CustomResourceDefinition.
func (c *Client) CRD(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := Do(ctx, c.Get().AbsPath(CRDPath(name)...)).Into(crd)
	return crd, err
}

// Objects lists one page of metadata over all namespaces.
func (c *Client) Objects(ctx context.Context, r schema.GroupVersionResource, limit int64, token string) (*metav1.PartialObjectMetadataList, error) {
	return c.ObjectsIn(ctx, r, "", limit, token)
}

// ObjectsIn lists one page of metadata of a namespace, or of all namespaces if it is empty.
func (c *Client) ObjectsIn(ctx context.Context, r schema.GroupVersionResource, namespace string, limit int64, token string) (*metav1.PartialObjectMetadataList, error) {
	req := c.Get().AbsPath(CollectionPath(r, namespace)...).Param("limit", strconv.FormatInt(limit, 10))
	if token != "" {
		req.Param("continue", token)
	}
	return MetadataList(ctx, req)
}

// FirstObject lists one object, with a timeout for the API server.
func (c *Client) FirstObject(ctx context.Context, r schema.GroupVersionResource, timeout time.Duration) (*metav1.PartialObjectMetadataList, error) {
	return MetadataList(ctx, c.Get().AbsPath(CollectionPath(r, "")...).
		Param("limit", "1").Param("timeout", timeout.String()))
}

// Find lists one object's metadata, and returns nil if the object does not exist. It uses a list, because the 404 of a
// GET could also mean that the version is no longer served, and because a pass over all objects has the permission to
// list.
func (c *Client) Find(ctx context.Context, r schema.GroupVersionResource, o walk.Object) (*metav1.PartialObjectMetadata, error) {
	list, err := MetadataList(ctx, c.find(r, o))
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// FindWhole is like Find, and returns the whole object.
func (c *Client) FindWhole(ctx context.Context, r schema.GroupVersionResource, o walk.Object) (*unstructured.Unstructured, error) {
	text, err := Body(Do(ctx, c.find(r, o).SetHeader("Accept", runtime.ContentTypeJSON)))
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", r.GroupResource(), walk.Key(o), err)
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // as documented
	}
	return Decode(list.Items[0])
}

func (c *Client) find(r schema.GroupVersionResource, o walk.Object) *rest.Request {
	path := ObjectPath(r, o)
	return Quiet(c.Get().AbsPath(path[:len(path)-1]...).Param("fieldSelector", "metadata.name="+o.GetName()))
}

// Quiet drops the warnings in the answer to a request, such as that a version is deprecated: the user has not chosen the version.
func Quiet(r *rest.Request) *rest.Request { return r.WarningHandler(rest.NoWarnings{}) }

// Decode decodes the JSON of an object of any kind.
func Decode(text []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return o, nil
}

// UnknownCount means that the number of objects is not known.
const UnknownCount = -1

// Remaining returns the number of objects after a page, or UnknownCount if the API server does not report it.
func Remaining(list *metav1.PartialObjectMetadataList) int64 {
	switch {
	case list.RemainingItemCount != nil:
		return *list.RemainingItemCount
	case list.Continue != "":
		return UnknownCount
	}
	return 0
}
