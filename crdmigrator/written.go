package crdmigrator

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// written sends a write of an object within the byte budget, and returns the
// object's metadata after it.
func (c *apiClient) written(ctx context.Context, req *rest.Request, o *metav1.PartialObjectMetadata, dryRun bool) (*metav1.PartialObjectMetadata, error) {
	req.Param("fieldValidation", metav1.FieldValidationIgnore)
	switch {
	case dryRun:
		return metadata(ctx, req.Param("dryRun", metav1.DryRunAll))
	case !c.limiter.CountsBytes():
		return metadata(ctx, req)
	}
	var after *metav1.PartialObjectMetadata
	err := c.limiter.Write(ctx, func(ctx context.Context) (size int64, err error) {
		after, size, err = whole(ctx, req)
		if err == nil && after.ResourceVersion == o.ResourceVersion {
			return 0, nil // elided: etcd was not written
		}
		return size, err
	})
	return after, err
}

// metadata sends a request that is answered with an object's metadata alone.
func metadata(ctx context.Context, req *rest.Request) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	err := do(ctx, req.SetHeader("Accept", acceptMetadata)).Into(m)
	return m, err
}

// whole sends a request that is answered with the whole object, of which it
// returns the metadata and the size. Nothing else tells the size of what was
// stored; JSON at the storage version is what etcd holds of a custom resource,
// but for the resourceVersion.
func whole(ctx context.Context, req *rest.Request) (*metav1.PartialObjectMetadata, int64, error) {
	m := &metav1.PartialObjectMetadata{}
	answer := do(ctx, req.SetHeader("Accept", runtime.ContentTypeJSON))
	if err := answer.Error(); err != nil { // Raw does not read what the server says about it
		return m, 0, err
	}
	body, err := answer.Raw()
	if err != nil {
		return m, 0, err
	}
	return m, int64(len(body)), json.Unmarshal(body, m)
}
