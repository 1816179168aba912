package manager

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

const (
	// concurrentMigrations is the number of migrations that are reconciled at the same time.
	// They wait for the API server and the brokers.
	concurrentMigrations = 8
	// maxRetry bounds the backoff after a migration could not be read or written. The thirds of a timeout are not much
	// longer than a minute.
	maxRetry = 15 * time.Second
)

// CheckCRD returns an error unless the CRD of the kind is Godwit's. The protocol relies on the validation rules in it,
// and the controller of another project would act on the same objects.
func CheckCRD(ctx context.Context, reader client.Reader) error {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := reader.Get(ctx, client.ObjectKey{Name: api.CRDName}, crd)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the kind ManagedClusterMigration is not installed: kubectl apply --server-side -f crds-cluster-migration.yaml, a file of the release, or install the chart with crds.enabled=true")
	case err != nil:
		return fmt.Errorf("read CRD %s: %w", api.CRDName, err)
	case crd.Annotations[api.OwnerAnnotation] != api.Owner:
		return fmt.Errorf("CRD %s has no annotation %s=%s, so it is another project's, such as multicluster-global-hub: "+
			"stop the controller of that project, and replace the CRD: kubectl replace -f crds-cluster-migration.yaml, a file of the release", api.CRDName, api.OwnerAnnotation, api.Owner)
	}
	return nil
}

// SetupWithManager registers the reconciler, and the receiver of messages. Both run in the
// leader alone.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	r.changed = make(chan event.TypedGenericEvent[*api.ManagedClusterMigration], changedMigrations)
	// Only this reconciler writes the status.
	byUser := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	if err := builder.ControllerManagedBy(mgr).
		Named("clustermigration").
		For(&api.ManagedClusterMigration{}, builder.WithPredicates(byUser)).
		WatchesRawSource(source.TypedChannel(r.changed, &handler.TypedEnqueueRequestForObject[*api.ManagedClusterMigration]{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentMigrations,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, maxRetry),
		}).
		Complete(r); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(r.Receive))
}
