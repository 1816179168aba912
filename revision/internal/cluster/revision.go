package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/walk"
)

// Revisions is the resource of ControllerRevisions.
var Revisions = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")

// The data of a ControllerRevision can't be changed, and the API server compares its
// bytes. To answer in JSON, and to apply a patch, the server encodes the data anew:
// without spaces, and with & < > escaped. Data that a script or a backup tool stored in
// another way then differs from the stored bytes, and every patch is refused as a change
// of data. In protobuf data are opaque bytes in both directions. So a revision is read in
// protobuf, and its metadata are written by a PUT of what was read. Lists are read in
// protobuf as well: neither side encodes or decodes data that Godwit does not use.

// RevisionPages lists ControllerRevisions, in one namespace or in all of them, and keeps of each
// what read returns. It makes as many attempts at a page; 0 means walk's default.
func RevisionPages[T any](ctx context.Context, c *Client, namespace string, attempts int, read func(*appsv1.ControllerRevision) (T, error)) walk.Source[T] {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[T], string, error) {
		req := c.protobuf.Get().NamespaceIfScoped(namespace, namespace != "").Resource(Revisions.Resource).Param("limit", strconv.FormatInt(limit, 10))
		if token != "" {
			req.Param("continue", token)
		}
		var l appsv1.ControllerRevisionList
		if err := req.MaxRetries(0).Do(ctx).Into(&l); err != nil {
			return walk.Page[T]{}, "", fmt.Errorf("list %s: %w", Revisions.GroupResource(), c.retryForbidden(ctx, err))
		}
		items := make([]T, len(l.Items))
		for i := range l.Items {
			var err error
			if items[i], err = read(&l.Items[i]); err != nil {
				return walk.Page[T]{}, "", err
			}
		}
		return walk.Page[T]{Items: items, ResourceVersion: l.ResourceVersion, Remaining: -1}, l.Continue, nil
	}
	return walk.List(ctx, fetch, walk.ListOptions{PageObjects: pageObjects, Attempts: attempts})
}

// Revisions lists the revisions of a namespace. A page that the API server does not answer is not asked for again.
func (c *Client) Revisions(ctx context.Context, namespace string) iter.Seq2[*appsv1.ControllerRevision, error] {
	whole := func(r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) { return r, nil }
	return func(yield func(*appsv1.ControllerRevision, error) bool) {
		for page, err := range RevisionPages(ctx, c, namespace, 1, whole) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range page.Items {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// Revision reads one, live, with its data as etcd holds them; nil if there is none.
func (c *Client) Revision(ctx context.Context, namespace, name string) (*appsv1.ControllerRevision, error) {
	r := &appsv1.ControllerRevision{}
	err := c.protobuf.Get().Namespace(namespace).Resource(Revisions.Resource).Name(name).MaxRetries(0).Do(ctx).Into(r)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, &ReadError{fmt.Errorf("read controllerrevision %s/%s: %w", namespace, name, c.retryForbidden(ctx, err))}
	}
	return r, nil
}

// FindRevision reads one as Revision does, and needs only the permission to list.
func (c *Client) FindRevision(ctx context.Context, namespace, name string) (*appsv1.ControllerRevision, error) {
	var l appsv1.ControllerRevisionList
	err := c.protobuf.Get().Namespace(namespace).Resource(Revisions.Resource).Param("fieldSelector", "metadata.name="+name).MaxRetries(0).Do(ctx).Into(&l)
	if err != nil {
		return nil, &ReadError{fmt.Errorf("read controllerrevision %s/%s: %w", namespace, name, c.retryForbidden(ctx, err))}
	}
	if len(l.Items) == 0 {
		return nil, nil
	}
	return &l.Items[0], nil
}

// ReadError says that a request which writes nothing failed.
type ReadError struct{ error }

func (e *ReadError) Unwrap() error { return e.error }

// Create sends JSON: encoding/json writes data exactly as the API server does, so that
// later patches by other clients pass, and the answer has the bytes that were stored.
func (c *Client) Create(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	created := &appsv1.ControllerRevision{}
	err = c.protobuf.Post().Namespace(r.Namespace).Resource(Revisions.Resource).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Param("fieldManager", fieldManager).Body(body).MaxRetries(0).Do(ctx).Into(created)
	return created, c.retryForbidden(ctx, err)
}

// Annotate sets annotations of a revision that this client has read or created, and no other client has written since, and
// removes others. The revision that is given stays as it is.
func (c *Client) Annotate(ctx context.Context, r *appsv1.ControllerRevision, set map[string]string, remove ...string) (*appsv1.ControllerRevision, error) {
	r = r.DeepCopy()
	for key, value := range set {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value)
	}
	for _, key := range remove {
		delete(r.Annotations, key)
	}
	return c.Update(ctx, r)
}

// Label sets labels, as Annotate does annotations.
func (c *Client) Label(ctx context.Context, r *appsv1.ControllerRevision, set map[string]string) (*appsv1.ControllerRevision, error) {
	r = r.DeepCopy()
	for key, value := range set {
		metav1.SetMetaDataLabel(&r.ObjectMeta, key, value)
	}
	return c.Update(ctx, r)
}

// Update writes a revision that this client has read, and of which only metadata differ since.
func (c *Client) Update(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	if err := lineage.CheckFormat(r); err != nil {
		return nil, err
	}
	written := &appsv1.ControllerRevision{}
	err := c.protobuf.Put().Namespace(r.Namespace).Resource(Revisions.Resource).Name(r.Name).
		Param("fieldManager", fieldManager).Body(r).MaxRetries(0).Do(ctx).Into(written)
	if err != nil {
		return nil, fmt.Errorf("write controllerrevision %s/%s: %w", r.Namespace, r.Name, c.retryForbidden(ctx, err))
	}
	return written, nil
}

// Delete deletes a revision if it is still exactly the one that was read.
func (c *Client) Delete(ctx context.Context, r *appsv1.ControllerRevision) error {
	if err := lineage.CheckFormat(r); err != nil {
		return err
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion},
	})
	if err != nil {
		return err
	}
	return c.ask(ctx, c.json.Delete().AbsPath(path(Revisions, r.Namespace, r.Name)...).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body), nil)
}
