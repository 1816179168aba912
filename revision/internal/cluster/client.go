package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/walk"
)

// fieldManager names Godwit's writes in metadata.managedFields.
const fieldManager = "godwit"

// Client sends requests to one API server.
type Client struct {
	json rest.Interface
	// protobuf reads and writes ControllerRevisions, see revision.go.
	protobuf rest.Interface
}

// New makes a client whose requests the limiter paces. It sends nothing.
func New(cfg *rest.Config, limiter *walk.Limiter) (*Client, error) {
	cfg = limiter.Config(cfg)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // an error is a Status, and says why
	if err := appsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.ContentType = runtime.ContentTypeJSON
	inJSON, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/apis", &appsv1.SchemeGroupVersion
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	inProtobuf, err := rest.RESTClientFor(cfg)
	return &Client{json: inJSON, protobuf: inProtobuf}, err
}

func path(r schema.GroupVersionResource, namespace string, more ...string) []string {
	return append(kube.CollectionPath(r, namespace), more...)
}

// ask sends a request without client-go's hidden retries, and decodes the answer.
func (c *Client) ask(ctx context.Context, r *rest.Request, into any) error {
	result := r.SetHeader("Accept", runtime.ContentTypeJSON).MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil {
		return c.retryForbidden(ctx, err)
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

// retryForbidden makes a 403 an error to retry where the permission is not missing: an API server
// answers 403 to every request for a moment after its start, and also to the access review that
// is asked for here. Another API server may answer the review.
func (c *Client) retryForbidden(ctx context.Context, err error) error {
	if apierror.TreatmentOf(err) != apierror.Confirm {
		return err
	}
	if allowed, reviewErr := kube.Allows(ctx, c.json, apierror.Of(err).Permission); reviewErr == nil && !allowed {
		return err
	}
	return apierror.RetryForbidden(err)
}

// Forbidden makes an error that was retried the 403 again that it was, for callers that no attempt got past. Other errors
// stay as they are.
func Forbidden(err error) error {
	if apierror.IsForbidden(err) && !apierrors.IsForbidden(err) {
		return &forbiddenError{err}
	}
	return err
}

type forbiddenError struct{ error }

func (e *forbiddenError) Unwrap() error { return e.error }

// Status makes it an answer of the API server to callers.
func (e *forbiddenError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: e.Error()}
}

// Pages lists a resource, in one namespace or in all of them, and keeps of each object what
// read returns.
func Pages[T any](ctx context.Context, c *Client, r schema.GroupVersionResource, namespace string, read func(map[string]any) T) walk.Source[T] {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[T], string, error) {
		req := c.json.Get().AbsPath(path(r, namespace)...).Param("limit", strconv.FormatInt(limit, 10))
		if token != "" {
			req.Param("continue", token)
		}
		l := list[T]{read: read}
		if err := c.ask(ctx, req, &l); err != nil {
			return walk.Page[T]{}, "", fmt.Errorf("list %s: %w", r.GroupResource(), err)
		}
		return walk.Page[T]{Items: l.items, ResourceVersion: l.ResourceVersion, Remaining: -1}, l.Continue, nil
	}
	return walk.List(ctx, fetch, walk.ListOptions{PageObjects: pageObjects})
}

// Get reads one object live; nil if there is none.
func (c *Client) Get(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := c.ask(ctx, c.json.Get().AbsPath(path(r, namespace, name)...), u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", r.GroupResource(), namespace, name, err)
	}
	return u, nil
}

// Find reads one object live, and needs only the permission to list; nil if there is none.
func (c *Client) Find(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	l := list[map[string]any]{read: func(object map[string]any) map[string]any { return object }}
	err := c.ask(ctx, c.json.Get().AbsPath(path(r, namespace)...).Param("fieldSelector", "metadata.name="+name), &l)
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", r.GroupResource(), namespace, name, err)
	}
	if len(l.items) == 0 {
		return nil, nil
	}
	return &unstructured.Unstructured{Object: l.items[0]}, nil
}

// NamespaceTerminating reports whether a namespace is being deleted, or gone.
func (c *Client) NamespaceTerminating(ctx context.Context, name string) (bool, error) {
	var namespace metav1.PartialObjectMetadata
	err := c.ask(ctx, c.json.Get().AbsPath("api", "v1", "namespaces", name), &namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// Patch writes fields of a referrer, or of one of its subresources, each at a JSON pointer, and returns the resourceVersion
// after it. A merge patch that has the resourceVersion is answered with a conflict whenever the object changed; a JSON patch
// would be refused as invalid where a field is gone, as is a patch of an object that is invalid.
func (c *Client) Patch(ctx context.Context, r *reference.Referrer, subresource, resourceVersion string, fields map[string]string) (string, error) {
	content := map[string]any{}
	put(content, "/metadata/resourceVersion", resourceVersion)
	req, err := c.patch(r, subresource, content, fields)
	if err != nil {
		return "", err
	}
	// The answer in metadata alone is smaller; what an old server answers instead has the same
	// field. The others, managedFields the largest, are not decoded.
	var patched struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	result := req.Do(ctx)
	if err := result.Error(); err != nil {
		return "", c.retryForbidden(ctx, err)
	}
	answer, err := result.Raw()
	if err != nil {
		return "", err
	}
	err = json.Unmarshal(answer, &patched)
	return patched.Metadata.ResourceVersion, err
}

// TryPatch is a dry run of Patch, whatever the resourceVersion is.
func (c *Client) TryPatch(ctx context.Context, r *reference.Referrer, subresource string, fields map[string]string) error {
	req, err := c.patch(r, subresource, map[string]any{}, fields)
	if err != nil {
		return err
	}
	return c.retryForbidden(ctx, req.Param("dryRun", metav1.DryRunAll).Do(ctx).Error())
}

// patch is the request that adds fields to the content of a merge patch, and sends it.
func (c *Client) patch(r *reference.Referrer, subresource string, content map[string]any, fields map[string]string) (*rest.Request, error) {
	for pointer, value := range fields {
		put(content, pointer, value)
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	target := path(r.Resource, r.Namespace, r.Name)
	if subresource != "" {
		target = append(target, subresource)
	}
	return c.json.Patch(types.MergePatchType).AbsPath(target...).Param("fieldManager", fieldManager).
		SetHeader("Accept", metadataOnly).Body(body).MaxRetries(0), nil
}

// metadataOnly asks for an object's metadata as JSON.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// put sets a value in nested objects, by a JSON pointer. No reference is in a list.
func put(content map[string]any, pointer, value string) {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for _, key := range keys[:len(keys)-1] {
		next, ok := content[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			content[key] = next
		}
		content = next
	}
	content[keys[len(keys)-1]] = value
}
