package request

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/kube"
)

// write sends a write of an object within the byte budget, and returns the
// object's metadata after it.
func (c *Client) write(ctx context.Context, req *rest.Request, o *metav1.PartialObjectMetadata, dryRun bool) (*metav1.PartialObjectMetadata, error) {
	req.Param("fieldValidation", metav1.FieldValidationIgnore)
	if dryRun {
		return kube.Metadata(ctx, req.Param("dryRun", metav1.DryRunAll))
	}
	var after *metav1.PartialObjectMetadata
	err := c.limiter.WriteSampled(ctx, func(ctx context.Context, measure bool) (size int64, err error) {
		if measure {
			after, size, err = doMeasured(ctx, req)
		} else {
			after, err = kube.Metadata(ctx, req)
		}
		if err == nil && after.ResourceVersion == o.ResourceVersion {
			return 0, nil // elided: etcd was not written
		}
		return size, err
	})
	return after, err
}

// doMeasured sends a request for which the API server returns the whole object,
// and returns the metadata and the size of the object. Only the whole object
// shows the size of what was stored: etcd has a custom resource as JSON at the
// storage version, without the resourceVersion.
func doMeasured(ctx context.Context, req *rest.Request) (*metav1.PartialObjectMetadata, int64, error) {
	m := &metav1.PartialObjectMetadata{}
	body, err := kube.Body(kube.Do(ctx, req.SetHeader("Accept", runtime.ContentTypeJSON)))
	if err != nil {
		return m, 0, err
	}
	m.ObjectMeta, err = metadataIn(body)
	return m, int64(len(body)), err
}

// metadataIn reads an object up to the end of its metadata. The API server
// writes keys in order, so that spec and status, which can be a megabyte, are not
// parsed.
func metadataIn(object []byte) (metav1.ObjectMeta, error) {
	var m metav1.ObjectMeta
	d := json.NewDecoder(bytes.NewReader(object))
	first, err := d.Token()
	if err == nil && first != json.Delim('{') {
		err = fmt.Errorf("it begins with %v", first)
	}
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); key == "metadata" {
			err = d.Decode(&m)
			break
		}
		var skipped json.RawMessage
		err = errors.Join(err, d.Decode(&skipped))
	}
	if err == nil && m.ResourceVersion == "" {
		err = errors.New("it has no resourceVersion")
	}
	if err != nil {
		return m, fmt.Errorf("read the object that was written: %w", err)
	}
	return m, nil
}
