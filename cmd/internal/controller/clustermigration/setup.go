// Package clustermigration runs package cmd/hub/manager, the manager's side of migrations of managed clusters, in the
// manager of Godwit.
package clustermigration

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	hubmanager "github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/internal/controller/stalled"
)

// The CRD must be Godwit's own.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=managedclustermigrations.global-hub.open-cluster-management.io,verbs=get
// +kubebuilder:rbac:groups=global-hub.open-cluster-management.io,resources=managedclustermigrations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=global-hub.open-cluster-management.io,resources=managedclustermigrations/status,verbs=update;patch
// ConfigMaps with the state of a migration are in its namespace.
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// Both hubs are ManagedClusters, and the token of a ManagedServiceAccount is a Secret in the
// namespace of its hub.
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters,verbs=get
// +kubebuilder:rbac:groups=addon.open-cluster-management.io,resources=managedclusteraddons,verbs=get
// +kubebuilder:rbac:groups=authentication.open-cluster-management.io,resources=managedserviceaccounts,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// The identity of the manager is a Secret beside it.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create,namespace=OWN

// Setup registers the controller. The namespace is the manager's own, and allowed are those whose migrations it begins; none means all.
func Setup(ctx context.Context, mgr manager.Manager, namespace string, allowed []string, brokers kafka.Options) error {
	if err := hubmanager.CheckCRD(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	own, err := identity.Ensure(ctx, mgr.GetClient(), mgr.GetAPIReader(), identity.Owner{Namespace: namespace, Name: message.ManagerName})
	if err != nil {
		return fmt.Errorf("prepare the identity of the manager: %w", err)
	}
	// A user configures it at the agents of hubs.
	log.FromContext(ctx).Info("The manager moves clusters between hubs", "publicKey", identity.Format(own.Key()))
	counted := hubmanager.NewMetrics(mgr.GetClient())
	waiting := stalled.NewMetrics("ManagedClusterMigration", stalled.Of(mgr.GetClient(), &hubapi.ManagedClusterMigrationList{}))
	if err := errors.Join(counted.Register(metrics.Registry), waiting.Register(metrics.Registry)); err != nil {
		return err
	}
	transport, err := kafka.New(brokers)
	if err != nil {
		return err
	}
	r := &hubmanager.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("godwit"), Clock: clock.RealClock{},
		Transport: transport, Metrics: counted, Namespace: namespace, Allowed: allowed, Identity: own,
	}
	if err := r.SetupWithManager(mgr); err != nil {
		transport.Close()
		return err
	}
	return nil
}
