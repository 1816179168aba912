package crdmigrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// fieldManager names our writes where the server records them.
	fieldManager = "godwit"

	// Metadata is all a rewrite needs of an object: protobuf where the server
	// has it, since decoding is a good part of what a pass costs the client.
	acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptMetadataList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	utilruntime.Must(authorizationv1.AddToScheme(scheme))
	utilruntime.Must(coordinationv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

// apiClient is every request this package makes. It decides nothing, never
// retries by itself, and paces itself by the limiter.
type apiClient struct {
	rest    rest.Interface
	limiter *walk.Limiter
	clock   *kube.ServerClock
}

func newClient(cfg *rest.Config, limiter *walk.Limiter, local clock.PassiveClock) (*apiClient, error) {
	c := &apiClient{limiter: limiter, clock: kube.NewServerClock(local)}
	cfg = limiter.Config(cfg)
	cfg.NegotiatedSerializer = codecs.WithoutConversion()
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return meter{next: next, clock: c.clock} })

	var err error
	c.rest, err = rest.UnversionedRESTClientFor(cfg)
	return c, err
}

// do sends a request without client-go's hidden retries: a walk must see every
// 429 to pace itself by it.
func do(ctx context.Context, r *rest.Request) rest.Result {
	return r.MaxRetries(0).Do(ctx)
}

// raw is the body of an answer, or the error as the server worded it, for which
// Result.Raw has no other word than "unknown".
func raw(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

func crdPath(name string, subresource ...string) []string {
	return append([]string{"apis", apiextensionsv1.GroupName, "v1", "customresourcedefinitions", name}, subresource...)
}

func (c *apiClient) crd(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := do(ctx, c.rest.Get().AbsPath(crdPath(name)...)).Into(crd)
	return crd, err
}

// crdMetadata is the cheap look at a definition: schemas run to hundreds of
// kilobytes.
func (c *apiClient) crdMetadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	err := do(ctx, c.rest.Get().AbsPath(crdPath(name)...).SetHeader("Accept", acceptMetadata)).Into(m)
	return m, err
}

func (c *apiClient) crdNames(ctx context.Context, selector string) ([]string, error) {
	var names []string
	for token := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		r := c.rest.Get().AbsPath("apis", apiextensionsv1.GroupName, "v1", "customresourcedefinitions").
			SetHeader("Accept", acceptMetadataList).
			Param("limit", strconv.Itoa(walk.DefaultPageObjects))
		if selector != "" {
			r.Param("labelSelector", selector)
		}
		if token != "" {
			r.Param("continue", token)
		}
		if err := do(ctx, r).Into(list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		if token = list.Continue; token == "" {
			return names, nil
		}
	}
}

// patchCRD counts against the byte budget and does not wait for it: a run that
// is to stop still saves its checkpoint.
func (c *apiClient) patchCRD(ctx context.Context, name string, patchType types.PatchType, body []byte, subresource ...string) error {
	r := c.rest.Patch(patchType).AbsPath(crdPath(name, subresource...)...).
		Param("fieldManager", fieldManager).
		Body(body)
	if !c.limiter.CountsBytes() {
		return do(ctx, r.SetHeader("Accept", acceptMetadata)).Error()
	}
	_, size, err := whole(ctx, r)
	c.limiter.Book(size)
	return err
}

// rehearse sends a definition as a dry run: to be created, or, with a
// resourceVersion, as an update of what is there.
func (c *apiClient) rehearse(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	crd.TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
	body, err := json.Marshal(crd)
	if err != nil {
		return err
	}
	r := c.rest.Put().AbsPath(crdPath(crd.Name)...)
	if crd.ResourceVersion == "" {
		path := crdPath(crd.Name)
		r = c.rest.Post().AbsPath(path[:len(path)-1]...)
	}
	return do(ctx, r.SetHeader("Accept", acceptMetadata).
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Param("fieldManager", fieldManager).
		Param("dryRun", metav1.DryRunAll).
		Body(body)).Error()
}

func collectionPath(r schema.GroupVersionResource) []string {
	return []string{"apis", r.Group, r.Version, r.Resource}
}

func objectPath(r schema.GroupVersionResource, o walk.Object) []string {
	path := []string{"apis", r.Group, r.Version}
	if ns := o.GetNamespace(); ns != "" {
		path = append(path, "namespaces", ns)
	}
	return append(path, r.Resource, o.GetName())
}

// objects lists one page of metadata over all namespaces.
func (c *apiClient) objects(ctx context.Context, r schema.GroupVersionResource, limit int64, token string) (*metav1.PartialObjectMetadataList, error) {
	req := c.rest.Get().AbsPath(collectionPath(r)...).
		SetHeader("Accept", acceptMetadataList).
		Param("limit", strconv.FormatInt(limit, 10))
	if token != "" {
		req.Param("continue", token)
	}
	list := &metav1.PartialObjectMetadataList{}
	err := do(ctx, req).Into(list)
	return list, err
}

// firstObject lists one object, and has the API server give up after a time.
func (c *apiClient) firstObject(ctx context.Context, r schema.GroupVersionResource, timeout time.Duration) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := do(ctx, c.rest.Get().AbsPath(collectionPath(r)...).
		SetHeader("Accept", acceptMetadataList).
		Param("limit", "1").Param("timeout", timeout.String())).Into(list)
	return list, err
}

// countAt counts the objects of a resource as they were at a resourceVersion. It
// returns unknownCount where the API server can't or doesn't say.
func (c *apiClient) countAt(ctx context.Context, r schema.GroupVersionResource, resourceVersion string) (int64, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := do(ctx, c.rest.Get().AbsPath(collectionPath(r)...).
		SetHeader("Accept", acceptMetadataList).
		Param("limit", "1").
		Param("resourceVersion", resourceVersion).
		Param("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))).Into(list)
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return unknownCount, nil
	case err != nil:
		return unknownCount, err
	}
	after := remaining(list)
	if after == unknownCount {
		return unknownCount, nil
	}
	return int64(len(list.Items)) + after, nil
}

// remaining is the number of objects after those in a list, as the API server says;
// unknownCount where it does not say.
func remaining(list *metav1.PartialObjectMetadataList) int64 {
	switch {
	case list.RemainingItemCount != nil:
		return *list.RemainingItemCount
	case list.Continue != "":
		return unknownCount
	}
	return 0
}

// cached asks the API server's watch cache for an object that nobody has. The API
// server fills that cache once it has read every object, and answers 429 before.
func (c *apiClient) cached(ctx context.Context, r schema.GroupVersionResource, timeout time.Duration) error {
	return do(ctx, c.rest.Get().AbsPath(collectionPath(r)...).
		SetHeader("Accept", acceptMetadataList).
		Param("resourceVersion", "0").Param("fieldSelector", "metadata.name=godwit-looks-for-nothing").
		Param("timeout", timeout.String())).Error()
}

// find asks the collection for one object, and returns nil if it is not there.
// Unlike a GET, whose 404 may also mean that the version is no longer served, an
// empty list leaves no doubt; and it needs no right that a pass does not need.
func (c *apiClient) find(ctx context.Context, r schema.GroupVersionResource, o walk.Object) (*metav1.PartialObjectMetadata, error) {
	path := objectPath(r, o)
	list := &metav1.PartialObjectMetadataList{}
	err := do(ctx, c.rest.Get().AbsPath(path[:len(path)-1]...).
		SetHeader("Accept", acceptMetadataList).
		Param("fieldSelector", "metadata.name="+o.GetName())).Into(list)
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// objectPatch is one patch of one object.
type objectPatch struct {
	kind        types.PatchType
	body        []byte
	subresource string // "" for the object itself
	manager     string
	dryRun      bool
}

// patch sends a patch and returns the object's metadata after it. What is
// written is already there, so fields the schema does not know are no news.
func (c *apiClient) patch(ctx context.Context, r schema.GroupVersionResource, o *metav1.PartialObjectMetadata, p objectPatch) (*metav1.PartialObjectMetadata, error) {
	return c.written(ctx, c.patchRequest(r, o, p), o, p.dryRun)
}

func (c *apiClient) patchRequest(r schema.GroupVersionResource, o walk.Object, p objectPatch) *rest.Request {
	path := objectPath(r, o)
	if p.subresource != "" {
		path = append(path, p.subresource)
	}
	return c.rest.Patch(p.kind).AbsPath(path...).Body(p.body).Param("fieldManager", p.manager)
}

// update reads an object and puts back the very bytes, so that no field is lost
// on a client that does not know it.
func (c *apiClient) update(ctx context.Context, r schema.GroupVersionResource, o *metav1.PartialObjectMetadata, dryRun bool) (*metav1.PartialObjectMetadata, error) {
	path := objectPath(r, o)
	body, err := raw(do(ctx, c.rest.Get().AbsPath(path...).SetHeader("Accept", runtime.ContentTypeJSON)))
	if err != nil {
		return nil, err
	}
	return c.written(ctx, c.putRequest(r, o, body), o, dryRun)
}

func (c *apiClient) putRequest(r schema.GroupVersionResource, o walk.Object, body []byte) *rest.Request {
	return c.rest.Put().AbsPath(objectPath(r, o)...).SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(body).Param("fieldManager", fieldManager)
}

// setManagedFields replaces the managedFields of an object as it was read. The
// resourceVersion goes along as a replacement and not as a test: when it moved
// the answer is a conflict, where a failed test would be an invalid object.
func (c *apiClient) setManagedFields(ctx context.Context, r schema.GroupVersionResource, o *metav1.PartialObjectMetadata, entries []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	body, err := json.Marshal([]operation{
		{"replace", "/metadata/managedFields", entries},
		{"replace", "/metadata/resourceVersion", o.ResourceVersion},
	})
	if err != nil {
		return nil, err
	}
	return c.patch(ctx, r, o, objectPatch{kind: types.JSONPatchType, body: body, manager: fieldManager})
}

// create posts a review, a kind of object that is an answer and not stored.
func (c *apiClient) create(ctx context.Context, review runtime.Object, path ...string) error {
	body, err := json.Marshal(review)
	if err != nil {
		return err
	}
	return do(ctx, c.rest.Post().AbsPath(path...).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body)).Into(review)
}

func (c *apiClient) allowed(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a},
	}
	err := c.create(ctx, review, "apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews")
	return review.Status.Allowed, err
}

// whoAmI is the name the API server knows us by; empty when it does not say.
func (c *apiClient) whoAmI(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
	}
	if err := c.create(ctx, review, "apis", "authentication.k8s.io", "v1", "selfsubjectreviews"); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// identityLeases are what API servers renew to say that they exist.
func (c *apiClient) identityLeases(ctx context.Context) ([]coordinationv1.Lease, error) {
	list := &coordinationv1.LeaseList{}
	err := do(ctx, c.rest.Get().
		AbsPath("apis", "coordination.k8s.io", "v1", "namespaces", metav1.NamespaceSystem, "leases").
		Param("labelSelector", "apiserver.kubernetes.io/identity=kube-apiserver")).Into(list)
	return list.Items, err
}

// storageVersionMigration is the part of a StorageVersionMigration, the
// in-tree kind as well as kube-storage-version-migrator's, that says what it
// migrates and whether it has ended.
type storageVersionMigration struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Resource struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
		} `json:"resource"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (s storageVersionMigration) ended() bool {
	for _, c := range s.Status.Conditions {
		if c.Status == metav1.ConditionTrue && (c.Type == "Succeeded" || c.Type == "Failed") {
			return true
		}
	}
	return false
}

// storageVersionMigrations lists the migrations of one API group; none where
// the group is not served.
func (c *apiClient) storageVersionMigrations(ctx context.Context, group string) ([]storageVersionMigration, error) {
	body, err := raw(do(ctx, c.rest.Get().AbsPath("apis", group)))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var discovered metav1.APIGroup
	if err := json.Unmarshal(body, &discovered); err != nil {
		return nil, fmt.Errorf("read discovery of group %s: %w", group, err)
	}
	body, err = raw(do(ctx, c.rest.Get().AbsPath("apis", group, discovered.PreferredVersion.Version, "storageversionmigrations")))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []storageVersionMigration `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read storageversionmigrations.%s: %w", group, err)
	}
	return list.Items, nil
}

// notFound is how a definition that is not there is reported.
func notFound(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return fmt.Errorf("read customresourcedefinition %s: %w", name, err)
}

// ErrNotFound reports a CustomResourceDefinition that does not exist.
var ErrNotFound = errors.New("no such customresourcedefinition")
