package revision

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The data of a ControllerRevision can't be changed, and the API server compares its
// bytes. To answer in JSON, and to apply a patch, the server encodes the data anew:
// without spaces, and with & < > escaped. Data that a script or a backup tool stored in
// another way then differs from the stored bytes, and every patch is refused as a change
// of data. In protobuf data are opaque bytes in both directions. So a revision is read in
// protobuf, and its metadata are written by a PUT of what was read.

// revision reads one, live, with its data as etcd holds them; nil if there is none.
func (c *client) revision(ctx context.Context, namespace, name string) (*appsv1.ControllerRevision, error) {
	r := &appsv1.ControllerRevision{}
	err := c.stored.Get().Namespace(namespace).Resource(controllerRevisions.Resource).Name(name).MaxRetries(0).Do(ctx).Into(r)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, &readError{fmt.Errorf("read controllerrevision %s/%s: %w", namespace, name, err)}
	}
	return r, nil
}

// readError says that a request which writes nothing failed.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

// create sends JSON: encoding/json writes data exactly as the API server does, so that
// later patches by other clients pass, and the answer has the bytes that were stored.
func (c *client) create(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	created := &appsv1.ControllerRevision{}
	err = ask(ctx, c.rest.Post().AbsPath(path(controllerRevisions, r.Namespace)...).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Param("fieldManager", fieldManager).Body(body), created)
	return created, err
}

// metadata changes labels and annotations of a revision that this client has read or
// created, and no other client has written since; a nil removes one. The revision that
// is given stays as it is.
func (c *client) metadata(ctx context.Context, r *appsv1.ControllerRevision, labels, annotations map[string]*string) (*appsv1.ControllerRevision, error) {
	r = r.DeepCopy()
	r.Labels, r.Annotations = changed(r.Labels, labels), changed(r.Annotations, annotations)
	written := &appsv1.ControllerRevision{}
	err := c.stored.Put().Namespace(r.Namespace).Resource(controllerRevisions.Resource).Name(r.Name).
		Param("fieldManager", fieldManager).Body(r).MaxRetries(0).Do(ctx).Into(written)
	return written, err
}

// changed sets the keys that have a value, and removes the others.
func changed(all map[string]string, by map[string]*string) map[string]string {
	for key, value := range by {
		switch {
		case value == nil:
			delete(all, key)
		case all == nil:
			all = map[string]string{key: *value}
		default:
			all[key] = *value
		}
	}
	return all
}

// remove deletes a revision if it still is the very one that was read.
func (c *client) remove(ctx context.Context, r *appsv1.ControllerRevision) error {
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion},
	})
	if err != nil {
		return err
	}
	return ask(ctx, c.rest.Delete().AbsPath(path(controllerRevisions, r.Namespace, r.Name)...).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body), nil)
}
