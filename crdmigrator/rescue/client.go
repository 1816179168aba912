package rescue

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// Rescuer rescues CRDs of one cluster.
type Rescuer struct {
	options  Options
	client   *kube.Client
	migrator *storageversion.Migrator
}

// New returns a rescuer of the cluster of cfg. Limits and retries of cfg do not apply.
func New(cfg *rest.Config, o Options) (*Rescuer, error) {
	if o.Limiter == nil {
		o.Limiter = walk.NewLimiter(walk.Limits{})
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	c, err := kube.NewClient(cfg, o.Limiter, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	policy := o.Policy
	policy.InRescue = true
	m, err := storageversion.New(cfg, storageversion.Options{Policy: policy, Limiter: o.Limiter, Attempts: o.Attempts})
	if err != nil {
		return nil, err
	}
	return &Rescuer{options: o, client: c, migrator: m}, nil
}

// Plan reads one CRD and the metadata of all its objects, and decides. It changes nothing.
func (r *Rescuer) Plan(ctx context.Context, name string) (Plan, error) {
	f, err := r.observe(ctx, name)
	if err != nil {
		return Plan{}, err
	}
	return PlanFor(f, r.options), nil
}

func (r *Rescuer) observe(ctx context.Context, name string) (Facts, error) {
	var f Facts
	var err error
	if f.CRD, f.Journal, err = r.read(ctx, name); err != nil && !errors.As(err, &f.Newer) {
		return f, err
	}
	if resource := kube.ResourceOf(f.CRD); f.CRD.DeletionTimestamp == nil && kube.Serves(f.CRD, resource.Version) {
		if f.Objects, f.Unreachable, f.List = r.listAll(ctx, f.CRD); f.List != nil && !apierror.IsAnswer(f.List) {
			return f, fmt.Errorf("list the objects of %s: %w", name, f.List)
		}
	}
	needed := Grants(schema.GroupResource{Group: f.CRD.Spec.Group, Resource: f.CRD.Spec.Names.Plural})
	if f.Denied, err = kube.Denied(ctx, r.client, needed); err != nil {
		return f, err
	}
	if len(f.Denied) > 0 {
		f.User = kube.UserName(ctx, r.client)
	}
	return f, nil
}

// read reads a CRD and its journal. It does not retry a 403, since a plan must not wait for a missing permission; the steps retry
// it themselves.
func (r *Rescuer) read(ctx context.Context, name string) (crd *apiextensionsv1.CustomResourceDefinition, j Journal, err error) {
	err = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		crd, err = r.client.CRD(ctx, name)
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, j, fmt.Errorf("%w: %s", decision.ErrNotFound, name)
	case err != nil:
		return nil, j, fmt.Errorf("read customresourcedefinition %s: %w", name, err)
	}
	j, err = JournalOf(crd)
	return crd, j, err
}

// listAll lists the metadata of all objects, and finds those of another scope than the CRD.
func (r *Rescuer) listAll(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (objects int64, u decision.Unreachable, err error) {
	resource := kube.ResourceOf(crd)
	fetch := func(ctx context.Context, limit int64, token string) (page walk.Page[*metav1.PartialObjectMetadata], next string, err error) {
		list, err := r.client.Objects(ctx, resource, limit, token)
		if err != nil {
			return page, "", err
		}
		for i := range list.Items {
			page.Items = append(page.Items, &list.Items[i])
		}
		return page, list.Continue, nil
	}
	for page, err := range walk.List(ctx, fetch, walk.ListOptions{Attempts: quicklist.Attempts, Retry: quicklist.Transient}) {
		if err != nil {
			return objects, u, err
		}
		objects += int64(len(page.Items))
		for _, o := range page.Items {
			if decision.OfOtherScope(crd, o.Namespace) {
				u.Objects++
				u.Example = cmp.Or(u.Example, walk.Key(o))
			}
		}
	}
	return objects, u, nil
}

// patchCRD writes a CRD or its status.
func (r *Rescuer) patchCRD(ctx context.Context, name string, body []byte, subresource ...string) error {
	return kube.Do(ctx, r.client.Patch(types.JSONPatchType).AbsPath(kube.CRDPath(name, subresource...)...).
		Param("fieldManager", kube.FieldManager).SetHeader("Accept", kube.AcceptMetadata).Body(body)).Error()
}

func retry(ctx context.Context, f func(context.Context) error) error {
	return walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error { return apierror.RetryForbidden(f(ctx)) })
}
