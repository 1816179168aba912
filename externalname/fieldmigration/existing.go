package fieldmigration

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Existing selects the objects that were stored before admission had the migration. [Existing.Run] sends an empty patch
// for each of them, so that the same admission migrates existing and new objects.
type Existing struct {
	Resource schema.GroupVersionResource
	// Namespace and Selector restrict the objects; their zero values select all.
	Namespace string
	Selector  labels.Selector
	// Migration decides which objects need the patch, and whether admission has migrated them.
	Migration Applier
	// DryRun sends the patches as dry runs.
	DryRun bool
	// Limiter paces the requests; nil means one with walk's default limits.
	Limiter *walk.Limiter
}

// Reasons has the reasons why objects were not migrated.
var Reasons godwit.Catalog

// ReasonNotMigrated means that an object passed admission, and that its fields were not migrated: the
// webhook or the policy is missing, or does not match the object.
var ReasonNotMigrated = Reasons.Declare(godwit.Reason{
	Name: "NotMigrated", UserAction: true,
	Meaning: "An object passed admission, and its fields were not migrated: the webhook or the policy is missing, or does not match the object.",
	Fix:     godwit.Do("install the webhook or the MutatingAdmissionPolicy of the migration, and run the migration of existing objects again"),
})

var errNotMigrated = errors.New("the object passed admission, and its fields are not migrated. " +
	"Install the webhook or the MutatingAdmissionPolicy of this migration, and check that it matches the object")

// Run sends an empty patch for each object that the migration would change, and checks the response. It skips other
// objects, so a second run writes nothing. An object that admission did not migrate is Failed with [ReasonNotMigrated].
func (e Existing) Run(ctx context.Context, cfg *rest.Config) (walk.Report, error) {
	if e.Limiter == nil {
		e.Limiter = walk.NewLimiter(walk.Limits{})
	}
	client, err := kube.NewClient(cfg, e.Limiter, clock.RealClock{})
	if err != nil {
		return walk.Report{}, err
	}
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[*unstructured.Unstructured], string, error) {
		return client.WholePage(ctx, kube.Scope{Resource: e.Resource, Namespace: e.Namespace, Selector: e.Selector}, limit, token)
	}
	return walk.Run(ctx, walk.List(ctx, fetch, walk.ListOptions{}), func(ctx context.Context, o *unstructured.Unstructured) (godwit.Outcome, error) {
		return e.visit(ctx, client, o)
	}, walk.Options{Limiter: e.Limiter, Reason: reasonOf})
}

func (e Existing) visit(ctx context.Context, client *kube.Client, o *unstructured.Unstructured) (godwit.Outcome, error) {
	needed, err := e.Migration.Apply(o.DeepCopy())
	if err != nil {
		return godwit.Failed, fmt.Errorf("read the fields: %w", err)
	}
	if !needed {
		return godwit.Skipped, nil
	}
	after, err := e.patch(ctx, client, o)
	switch {
	case apierrors.IsNotFound(err):
		return e.confirmGone(ctx, client, o)
	case err != nil:
		return godwit.Failed, err
	}
	if left, err := e.Migration.Apply(after); err != nil || left {
		return godwit.Failed, errors.Join(errNotMigrated, err)
	}
	return godwit.Migrated, nil
}

// patch sends an empty patch: admission sees the object as it is stored.
func (e Existing) patch(ctx context.Context, client *kube.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	request := client.Patch(types.MergePatchType).AbsPath(kube.ObjectPath(e.Resource, o)...).
		Param("fieldManager", kube.FieldManager).SetHeader("Accept", runtime.ContentTypeJSON).Body([]byte("{}"))
	if e.DryRun {
		request.Param("dryRun", "All")
	}
	var text []byte
	err := e.Limiter.Write(ctx, func(ctx context.Context) (int64, error) {
		var err error
		if text, err = kube.Body(kube.Do(ctx, request)); err != nil || e.DryRun {
			return 0, err
		}
		return int64(len(text)), nil
	})
	if err != nil {
		return nil, err
	}
	return kube.Decode(text)
}

// confirmGone lists the object, because a 404 may also mean that the version is no longer served.
func (e Existing) confirmGone(ctx context.Context, client *kube.Client, o *unstructured.Unstructured) (godwit.Outcome, error) {
	found, err := client.Find(ctx, e.Resource, o)
	switch {
	case err != nil:
		return godwit.Failed, err
	case found != nil:
		return godwit.Failed, errors.New("the API server does not find an object that it lists")
	}
	return godwit.Gone, nil
}

func reasonOf(err error) *godwit.Reason {
	if errors.Is(err, errNotMigrated) {
		return ReasonNotMigrated
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return &godwit.Reason{Name: string(reason)}
	}
	return &godwit.Reason{Name: godwit.Failed.String()}
}
