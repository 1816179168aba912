package crdmigrator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/walk"
)

// read takes all of an object, and returns nil if it is not there. It asks the
// collection, as find does, since that takes no right that a pass does not take.
func (c *apiClient) read(ctx context.Context, r schema.GroupVersionResource, o walk.Object) (*unstructured.Unstructured, error) {
	path := objectPath(r, o)
	text, err := raw(do(ctx, c.rest.Get().AbsPath(path[:len(path)-1]...).
		SetHeader("Accept", runtime.ContentTypeJSON).
		Param("fieldSelector", "metadata.name="+o.GetName())))
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
	return decoded(list.Items[0])
}

// dryRun sends a write that is not carried out, and returns the whole object as
// it would be after it.
func dryRun(ctx context.Context, req *rest.Request) (*unstructured.Unstructured, error) {
	text, err := raw(do(ctx, req.SetHeader("Accept", runtime.ContentTypeJSON).
		Param("fieldValidation", metav1.FieldValidationIgnore).
		Param("dryRun", metav1.DryRunAll)))
	if err != nil {
		return nil, err
	}
	return decoded(text)
}

func decoded(text []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return o, nil
}

// firstIn lists one object of a namespace.
func (c *apiClient) firstIn(ctx context.Context, r schema.GroupVersionResource, namespace string) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := do(ctx, c.rest.Get().AbsPath("apis", r.Group, r.Version, "namespaces", namespace, r.Resource).
		SetHeader("Accept", acceptMetadataList).Param("limit", "1")).Into(list)
	return list, err
}

// namespaces lists the first ones.
func (c *apiClient) namespaces(ctx context.Context, limit int64) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := do(ctx, c.rest.Get().AbsPath("api", "v1", "namespaces").
		SetHeader("Accept", acceptMetadataList).Param("limit", strconv.FormatInt(limit, 10))).Into(list)
	return list, err
}
