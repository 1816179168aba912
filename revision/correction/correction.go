// Package correction writes to a ControllerRevision what a user knows about it, and the revision does
// not say. A patch by another client would be refused where the data of the revision is not compact
// JSON: see package cluster.
package correction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/walk"
)

// Correction is what a user knows about a revision that is Blocked, and the revision does not
// say.
type Correction struct {
	// Owner becomes the controller, in place of another one. Its kind is one of
	// [decision.Description.Owners]. The zero value leaves the controller as it is.
	Owner reference.Owner
	// Labels are set. Other labels stay as they are.
	Labels map[string]string
	// Replacement is the name of the revision that holds what this one held, which is gone. The
	// next run repoints the references to it. With it, nothing else can be corrected.
	Replacement string
}

// ErrExists says that a revision is not gone, and so needs no replacement.
var ErrExists = errors.New("exists")

// Corrector corrects revisions of one family in one cluster.
type Corrector struct {
	client *cluster.Client
	family decision.Family
}

// New makes a corrector. It sends nothing.
func New(cfg *rest.Config, family decision.Family) (*Corrector, error) {
	client, err := cluster.New(cfg, walk.NewLimiter(walk.Limits{}))
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Corrector{client, family}, nil
}

// attempts bounds how often a revision is read again that another client has written.
const attempts = 4

// Fix corrects a revision of the family, and reports whether it wrote anything. A revision or an
// owner that does not exist is a NotFound error of the API.
func (c *Corrector) Fix(ctx context.Context, revision types.NamespacedName, known Correction) (written bool, err error) {
	err = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		for attempt := 1; ; attempt++ {
			written, err = c.fixOnce(ctx, revision, known)
			if !apierrors.IsConflict(err) || attempt == attempts {
				return err
			}
		}
	})
	return written, cluster.Forbidden(err)
}

func (c *Corrector) fixOnce(ctx context.Context, key types.NamespacedName, known Correction) (bool, error) {
	r, err := c.client.Revision(ctx, key.Namespace, key.Name)
	if err != nil {
		return false, err
	}
	if known.Replacement != "" {
		return c.noteReplacement(ctx, r, key, known.Replacement)
	}
	if r == nil {
		return false, apierrors.NewNotFound(cluster.Revisions.GroupResource(), key.Name)
	}
	if _, err := c.family.Decode(r, reference.ExpectedType{}); errors.Is(err, decision.ErrNotInFamily) {
		return false, fmt.Errorf("controllerrevision %s: %w", key, err)
	}
	corrected := r.DeepCopy()
	for label, value := range known.Labels {
		metav1.SetMetaDataLabel(&corrected.ObjectMeta, label, value)
	}
	if known.Owner != (reference.Owner{}) {
		owner, err := c.owner(ctx, key.Namespace, known.Owner)
		if err != nil {
			return false, err
		}
		corrected.OwnerReferences = slices.DeleteFunc(corrected.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.UID == owner.UID || o.Controller != nil && *o.Controller
		})
		corrected.OwnerReferences = append(corrected.OwnerReferences, *owner)
	}
	if equality.Semantic.DeepEqual(r.ObjectMeta, corrected.ObjectMeta) {
		return false, nil
	}
	if _, err := c.client.Update(ctx, corrected); err != nil {
		return false, err
	}
	return true, nil
}

// noteReplacement writes to a revision that it holds what another one held, of which there is only the name.
func (c *Corrector) noteReplacement(ctx context.Context, existing *appsv1.ControllerRevision, gone types.NamespacedName, replacement string) (bool, error) {
	if existing != nil {
		return false, fmt.Errorf("controllerrevision %s %w", gone, ErrExists)
	}
	r, err := c.client.Revision(ctx, gone.Namespace, replacement)
	if err != nil {
		return false, err
	}
	if r == nil {
		return false, apierrors.NewNotFound(cluster.Revisions.GroupResource(), replacement)
	}
	if _, err := c.family.Decode(r, reference.ExpectedType{}); err != nil {
		return false, fmt.Errorf("controllerrevision %s/%s: %w", gone.Namespace, replacement, err)
	}
	key, name := lineage.SourceNote(r, gone.Name)
	if slices.Contains(slices.Collect(maps.Values(lineage.SourcesOf(r))), name) {
		return false, nil
	}
	_, err = c.client.Annotate(ctx, r, map[string]string{key: name})
	return err == nil, err
}

// owner reads an object that is to be a controller.
func (c *Corrector) owner(ctx context.Context, namespace string, o reference.Owner) (*metav1.OwnerReference, error) {
	known := c.family.Describe().Owners
	at := slices.IndexFunc(known, func(one decision.OwnerType) bool { return one.Kind == o.Kind })
	if at < 0 {
		return nil, fmt.Errorf("objects of kind %s own no revisions of the family %s", o.Kind, c.family.Describe().Name)
	}
	resource := known[at].GroupResource()
	version, err := c.client.Discovery().Served(ctx, resource, known[at].Versions)
	if err != nil {
		return nil, err
	}
	if version == "" {
		return nil, apierrors.NewNotFound(resource, o.Name)
	}
	live, err := c.client.Get(ctx, resource.WithVersion(version), namespace, o.Name)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return nil, apierrors.NewNotFound(resource, o.Name)
	}
	return metav1.NewControllerRef(live, live.GroupVersionKind()), nil
}
