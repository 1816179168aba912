package request

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Client sends every request of a migration of custom resources. It decides nothing, never
// retries by itself, and is paced by the limiter.
type Client struct {
	*kube.Client
	limiter *walk.Limiter
	config  *rest.Config
}

// New makes a client of the cluster of cfg.
func New(cfg *rest.Config, limiter *walk.Limiter, local clock.PassiveClock) (*Client, error) {
	c, err := kube.NewClient(cfg, limiter, local)
	return &Client{Client: c, limiter: limiter, config: cfg}, err
}

// ServerAt makes a client of one API server of the cluster, at an address of its own. The server's certificate is for the address of the
// cluster.
func (c *Client) ServerAt(address string) (*Client, error) {
	cluster, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(c.config)
	cfg.Host = cluster.Scheme + "://" + address
	cfg.ServerName = cmp.Or(cfg.ServerName, cluster.Hostname())
	return New(cfg, c.limiter, clock.RealClock{})
}

// CRDMetadata reads the metadata of a CRD alone: schemas run to hundreds of kilobytes.
func (c *Client) CRDMetadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	return kube.Metadata(ctx, c.Get().AbsPath(kube.CRDPath(name)...))
}

// CRDNames lists the names of the CustomResourceDefinitions that match a label selector. An empty
// selector matches all.
func (c *Client) CRDNames(ctx context.Context, selector string) ([]string, error) {
	var names []string
	for token := ""; ; {
		r := c.Get().AbsPath("apis", apiextensionsv1.GroupName, "v1", kube.CRDs.Resource).
			Param("limit", strconv.Itoa(walk.DefaultPageObjects))
		if selector != "" {
			r.Param("labelSelector", selector)
		}
		if token != "" {
			r.Param("continue", token)
		}
		list, err := kube.MetadataList(ctx, r)
		if err != nil {
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

// crdPage bounds the memory for a page of CRDs, whose schemas are in memory twice while it is decoded.
const crdPage = 100

// CRDs lists all CustomResourceDefinitions.
func (c *Client) CRDs(ctx context.Context) ([]apiextensionsv1.CustomResourceDefinition, error) {
	var crds []apiextensionsv1.CustomResourceDefinition
	for token := ""; ; {
		r := c.Get().AbsPath("apis", apiextensionsv1.GroupName, "v1", kube.CRDs.Resource).Param("limit", strconv.Itoa(crdPage))
		if token != "" {
			r.Param("continue", token)
		}
		var list apiextensionsv1.CustomResourceDefinitionList
		if err := kube.Do(ctx, r).Into(&list); err != nil {
			return nil, err
		}
		crds = append(crds, list.Items...)
		if token = list.Continue; token == "" {
			return crds, nil
		}
	}
}

// PatchCRD patches a CRD. The patch counts against the byte budget, and does not
// wait for it: a run that stops must still save its checkpoint.
func (c *Client) PatchCRD(ctx context.Context, name string, patchType types.PatchType, body []byte, subresource ...string) error {
	r := c.crdPatch(name, patchType, body, subresource...)
	if !c.limiter.CountsBytes() {
		return kube.Do(ctx, r.SetHeader("Accept", kube.AcceptMetadata)).Error()
	}
	_, size, err := doMeasured(ctx, r)
	c.limiter.AddWritten(size)
	return err
}

// TryPatchCRD sends the patch of a CRD as a server-side dry run.
func (c *Client) TryPatchCRD(ctx context.Context, name string, patchType types.PatchType, body []byte, subresource ...string) error {
	r := kube.Quiet(c.crdPatch(name, patchType, body, subresource...))
	return kube.Do(ctx, r.SetHeader("Accept", kube.AcceptMetadata).Param("dryRun", metav1.DryRunAll)).Error()
}

func (c *Client) crdPatch(name string, patchType types.PatchType, body []byte, subresource ...string) *rest.Request {
	return c.Patch(patchType).AbsPath(kube.CRDPath(name, subresource...)...).Param("fieldManager", kube.FieldManager).Body(body)
}

// CountAt counts the objects of a resource as they were at a resourceVersion. It
// returns kube.UnknownCount if the API server does not say.
func (c *Client) CountAt(ctx context.Context, r schema.GroupVersionResource, resourceVersion string) (int64, error) {
	list, err := kube.MetadataList(ctx, c.Get().AbsPath(kube.CollectionPath(r, "")...).
		Param("limit", "1").
		Param("resourceVersion", resourceVersion).
		Param("resourceVersionMatch", string(metav1.ResourceVersionMatchExact)))
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return kube.UnknownCount, nil
	case err != nil:
		return kube.UnknownCount, err
	}
	after := kube.Remaining(list)
	if after == kube.UnknownCount {
		return kube.UnknownCount, nil
	}
	return int64(len(list.Items)) + after, nil
}

// Cached asks the API server's watch cache for an object that does not exist. The API
// server fills that cache once it has read every object, and answers 429 before.
func (c *Client) Cached(ctx context.Context, r schema.GroupVersionResource, timeout time.Duration) error {
	return kube.Do(ctx, c.Get().AbsPath(kube.CollectionPath(r, "")...).
		SetHeader("Accept", kube.AcceptMetadataList).
		Param("resourceVersion", "0").Param("fieldSelector", "metadata.name=godwit-matches-no-object").
		Param("timeout", timeout.String())).Error()
}

// Patch is one patch of one object.
type Patch struct {
	Kind        types.PatchType
	Body        []byte
	Subresource string // "" for the object itself
	Manager     string
	DryRun      bool
}

// EmptyPatch is a merge patch of no field of an object, which fails once the object has another resourceVersion.
func EmptyPatch(o metav1.Object, subresource string) (Patch, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()}})
	return Patch{Kind: types.MergePatchType, Body: body, Subresource: subresource, Manager: kube.FieldManager}, err
}

// EmptyApply is the server-side apply of no field of an object, which fails once the object has another
// UID or resourceVersion.
func EmptyApply(kind schema.GroupVersionKind, o metav1.Object) (Patch, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": kind.GroupVersion().String(),
		"kind":       kind.Kind,
		"metadata": map[string]any{
			"name": o.GetName(), "namespace": o.GetNamespace(), "uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(),
		},
	})
	return Patch{Kind: types.ApplyPatchType, Body: body}, err
}

// PatchObject sends a patch and returns the object's metadata after it. The API
// server does not warn of fields that the schema does not know: the object has
// them already.
func (c *Client) PatchObject(ctx context.Context, r schema.GroupVersionResource, o *metav1.PartialObjectMetadata, p Patch) (*metav1.PartialObjectMetadata, error) {
	return c.write(ctx, c.PatchRequest(r, o, p), o, p.DryRun)
}

// Ended reports whether a write ended an object: it is being deleted, and no finalizer is left.
func Ended(after *metav1.PartialObjectMetadata) bool {
	return after.DeletionTimestamp != nil && len(after.Finalizers) == 0
}

// PatchRequest is the request of [Client.PatchObject].
func (c *Client) PatchRequest(r schema.GroupVersionResource, o walk.Object, p Patch) *rest.Request {
	path := kube.ObjectPath(r, o)
	if p.Subresource != "" {
		path = append(path, p.Subresource)
	}
	return c.Patch(p.Kind).AbsPath(path...).Body(p.Body).Param("fieldManager", p.Manager)
}

// ErrWritten means that another client has written an object since it was listed, so that it was not updated.
var ErrWritten = errors.New("another client wrote it since it was listed")

// UpdateObject reads an object and writes back the same bytes. A decoded object would lack
// the fields that this client does not know. The error is a conflict if another client has written the object since it was
// listed.
func (c *Client) UpdateObject(ctx context.Context, r schema.GroupVersionResource, o *metav1.PartialObjectMetadata, dryRun bool) (*metav1.PartialObjectMetadata, error) {
	path := kube.ObjectPath(r, o)
	body, err := kube.Body(kube.Do(ctx, c.Get().AbsPath(path...).SetHeader("Accept", runtime.ContentTypeJSON)))
	if err != nil {
		return nil, err
	}
	var now metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &now); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", r.GroupResource(), walk.Key(o), err)
	}
	if now.ResourceVersion != o.ResourceVersion {
		return nil, fmt.Errorf("%w: %w", ErrWritten, apierrors.NewConflict(r.GroupResource(), o.Name, ErrWritten))
	}
	return c.write(ctx, c.PutRequest(r, o, body), o, dryRun)
}

// PutRequest is the request of [Client.UpdateObject].
func (c *Client) PutRequest(r schema.GroupVersionResource, o walk.Object, body []byte) *rest.Request {
	return c.Put().AbsPath(kube.ObjectPath(r, o)...).SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(body).Param("fieldManager", kube.FieldManager)
}

// SetManagedFields replaces the managedFields of an object as it was read. The
// patch replaces the resourceVersion instead of testing it: if it has changed,
// the API server answers with a conflict, and a failed test would look like an
// invalid object.
func (c *Client) SetManagedFields(ctx context.Context, r schema.GroupVersionResource, o *metav1.PartialObjectMetadata, entries []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	body, err := json.Marshal([]Operation{
		{"replace", "/metadata/managedFields", entries},
		{"replace", "/metadata/resourceVersion", o.ResourceVersion},
	})
	if err != nil {
		return nil, err
	}
	return c.PatchObject(ctx, r, o, Patch{Kind: types.JSONPatchType, Body: body, Manager: kube.FieldManager})
}

// IdentityLeases lists the leases that the API servers renew while they run.
func (c *Client) IdentityLeases(ctx context.Context) ([]coordinationv1.Lease, error) {
	list := &coordinationv1.LeaseList{}
	err := kube.Do(ctx, c.Get().
		AbsPath("apis", "coordination.k8s.io", "v1", "namespaces", metav1.NamespaceSystem, "leases").
		Param("labelSelector", "apiserver.kubernetes.io/identity=kube-apiserver")).Into(list)
	return list.Items, err
}

// Discovery asks the server that answers for a resource what it says about it.
func (c *Client) Discovery(ctx context.Context, r schema.GroupVersionResource) (found bool, hash string, err error) {
	body, err := kube.Body(kube.Do(ctx, c.Get().AbsPath(kube.GroupVersionPath(r.GroupVersion())...).SetHeader("Accept", runtime.ContentTypeJSON)))
	if apierrors.IsNotFound(err) {
		return false, "", nil
	}
	if err != nil {
		return false, "", err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return false, "", fmt.Errorf("read discovery of %s: %w", r.GroupVersion(), err)
	}
	for _, resource := range list.APIResources {
		if resource.Name == r.Resource {
			return true, resource.StorageVersionHash, nil
		}
	}
	return false, "", nil
}

// ForwardsTo returns namespace/name of the service to which the API server forwards requests of a group and version, and why that one
// is not available; both are empty if the API server serves them itself.
func (c *Client) ForwardsTo(ctx context.Context, gv schema.GroupVersion) (service, unavailable string, err error) {
	body, err := kube.Body(kube.Do(ctx, c.Get().AbsPath("apis", "apiregistration.k8s.io", "v1", "apiservices", gv.Version+"."+gv.Group).SetHeader("Accept", runtime.ContentTypeJSON)))
	if err != nil {
		return "", "", err
	}
	var apiservice struct {
		Spec struct {
			Service *struct{ Namespace, Name string } `json:"service"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &apiservice); err != nil {
		return "", "", fmt.Errorf("read apiservice %s.%s: %w", gv.Version, gv.Group, err)
	}
	s := apiservice.Spec.Service
	if s == nil {
		return "", "", nil
	}
	if c := meta.FindStatusCondition(apiservice.Status.Conditions, "Available"); c != nil && c.Status == metav1.ConditionFalse {
		unavailable = c.Message
	}
	return s.Namespace + "/" + s.Name, unavailable, nil
}

// Endpoints are the addresses of the service kubernetes, with their ports: one for each API server, or that of a load balancer.
func (c *Client) Endpoints(ctx context.Context) ([]string, error) {
	var list discoveryv1.EndpointSliceList
	err := kube.Do(ctx, c.Get().
		AbsPath("apis", discoveryv1.GroupName, "v1", "namespaces", metav1.NamespaceDefault, "endpointslices").
		Param("labelSelector", discoveryv1.LabelServiceName+"=kubernetes")).Into(&list)
	var addresses []string
	for _, slice := range list.Items {
		port := "443"
		for _, p := range slice.Ports {
			if p.Port != nil {
				port = strconv.Itoa(int(*p.Port))
			}
		}
		for _, endpoint := range slice.Endpoints {
			for _, address := range endpoint.Addresses {
				addresses = append(addresses, net.JoinHostPort(address, port))
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), err
}

// StorageVersionMigration is the part of a StorageVersionMigration, the
// in-tree kind as well as kube-storage-version-migrator's, that says what it
// migrates and whether it has ended.
type StorageVersionMigration struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Resource struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
		} `json:"resource"`
	} `json:"spec"`
	Status struct {
		Conditions []MigrationCondition `json:"conditions"`
	} `json:"status"`
}

// MigrationCondition is the part of a condition that all versions of the kind have.
type MigrationCondition struct {
	Type   string                 `json:"type"`
	Status metav1.ConditionStatus `json:"status"`
	// LastTransitionTime is of v1 and v1beta1.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// LastUpdateTime is of v1alpha1: Kubernetes before 1.35, and kube-storage-version-migrator.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
}

// Succeeded is when the migration succeeded; zero where it did not.
func (s StorageVersionMigration) Succeeded() time.Time {
	for _, c := range s.Status.Conditions {
		if c.Status != metav1.ConditionTrue || c.Type != "Succeeded" {
			continue
		}
		if c.LastTransitionTime.IsZero() {
			return c.LastUpdateTime.Time
		}
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// Ended reports whether the migration succeeded or failed.
func (s StorageVersionMigration) Ended() bool {
	for _, c := range s.Status.Conditions {
		if c.Status == metav1.ConditionTrue && (c.Type == "Succeeded" || c.Type == "Failed") {
			return true
		}
	}
	return false
}

// StorageVersionMigrations lists the migrations of one API group; none where
// the group is not served.
func (c *Client) StorageVersionMigrations(ctx context.Context, group string) ([]StorageVersionMigration, error) {
	body, err := kube.Body(kube.Do(ctx, c.Get().AbsPath("apis", group)))
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
	body, err = kube.Body(kube.Do(ctx, c.Get().AbsPath("apis", group, discovered.PreferredVersion.Version, "storageversionmigrations")))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []StorageVersionMigration `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read storageversionmigrations.%s: %w", group, err)
	}
	return list.Items, nil
}

// Operation is one step of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// TrimOperations are the JSON patch of a status that makes the storage version the only stored one. The
// API server accepts any list there, so that the patch itself tests that the CRD is still the one of the
// pass: a client that made another version the storage version meanwhile changed the generation or
// storedVersions.
func TrimOperations(crd *apiextensionsv1.CustomResourceDefinition) []Operation {
	operations := []Operation{
		{Op: "test", Path: "/metadata/uid", Value: crd.UID},
		{Op: "test", Path: "/metadata/generation", Value: crd.Generation},
		{Op: "test", Path: "/status/storedVersions", Value: crd.Status.StoredVersions},
		{Op: "replace", Path: "/status/storedVersions", Value: []string{kube.StorageVersion(crd)}},
	}
	if i := kube.FailedMigration(crd); i >= 0 { // the condition is wrong after the trim
		failed := fmt.Sprintf("/status/conditions/%d", i)
		operations = append(operations,
			Operation{Op: "test", Path: failed + "/type", Value: apiextensionsv1.StorageMigrating},
			Operation{Op: "test", Path: failed + "/reason", Value: kube.MigrationFailed},
			Operation{Op: "remove", Path: failed})
	}
	return operations
}

// Retry is walk.Retry for the requests between the writes.
func Retry(ctx context.Context, f func(context.Context) error) error {
	return walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error { return apierror.RetryForbidden(f(ctx)) })
}
