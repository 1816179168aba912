package crdmigrator

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/kube"
)

// dryRun sends a write that is not carried out, and returns the whole object as
// it would be after it.
func dryRun(ctx context.Context, req *rest.Request) (*unstructured.Unstructured, error) {
	text, err := kube.Body(kube.Do(ctx, req.SetHeader("Accept", runtime.ContentTypeJSON).
		Param("fieldValidation", metav1.FieldValidationIgnore).
		Param("dryRun", metav1.DryRunAll)))
	if err != nil {
		return nil, err
	}
	return kube.Decode(text)
}

// firstIn lists one object of a namespace.
func (c *apiClient) firstIn(ctx context.Context, r schema.GroupVersionResource, namespace string) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := kube.Do(ctx, c.Get().AbsPath("apis", r.Group, r.Version, "namespaces", namespace, r.Resource).
		SetHeader("Accept", kube.AcceptMetadataList).Param("limit", "1")).Into(list)
	return list, err
}

// namespaces lists the first ones.
func (c *apiClient) namespaces(ctx context.Context, limit int64) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := kube.Do(ctx, c.Get().AbsPath("api", "v1", "namespaces").
		SetHeader("Accept", kube.AcceptMetadataList).Param("limit", strconv.FormatInt(limit, 10))).Into(list)
	return list, err
}
