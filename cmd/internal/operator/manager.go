// Package operator is the process that runs in a cluster: it builds the manager,
// its clients, its limits and its endpoints, and starts the controllers that are
// enabled.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/internal/broker"
	"github.com/godwit-dev/godwit/cmd/internal/controller/clustermigration"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdinventory"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdscope"
	"github.com/godwit-dev/godwit/cmd/internal/controller/revisionupgrade"
	"github.com/godwit-dev/godwit/cmd/internal/controller/stalled"
	"github.com/godwit-dev/godwit/cmd/internal/serving"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/walk"
)

// Options are the flags of the process.
type Options struct {
	Controllers []string // empty: all, and the environment may switch them off
	ConfigFile  string
	// Kafka are the brokers of ClusterMigration, which its section of the file has unless they
	// are given.
	Kafka *kafka.Options
	// MigrationNamespaces are those whose ManagedClusterMigrations begin, which the file has unless they are given.
	MigrationNamespaces []string
	Process             serving.Options
}

// leaderElectionID returns the name of the lease of a feature. It does not depend on the other features of a process:
// if two managers have different --controllers, one leads each feature that both have.
func leaderElectionID(controller string) string { return "godwit-" + component(controller) }

// Run runs the manager until the context ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	controllers, err := enabled(o.Controllers, os.LookupEnv)
	if err != nil {
		return err
	}
	configuration, err := ReadConfiguration(o.ConfigFile)
	if err != nil {
		return err
	}
	if len(o.MigrationNamespaces) > 0 {
		configuration.ClusterMigration.Namespaces = o.MigrationNamespaces
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, hubapi.AddToScheme, clusterv1.Install} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	namespace := o.Process.OwnNamespace()
	if o.Process.LeaderElection && namespace == "" {
		return errors.New("where is the lease of the leader? Outside a cluster say --leader-elect-namespace=NAMESPACE, or --leader-elect=false where this is the only manager")
	}
	if len(controllers) == 0 {
		log.FromContext(ctx).Info("No controller is enabled: nothing is migrated", "variable", EnableVariable)
	}
	s := setting{Configuration: configuration, limiter: walk.NewLimiter(configuration.Limits.walk()), namespace: namespace, kafka: o.Kafka}
	managers, err := o.managers(ctx, cfg, scheme, controllers, s)
	if err != nil {
		return err
	}
	return start(ctx, managers)
}

// managers returns one manager for each feature, because each feature has its own leader election. The first one serves
// the endpoints for all; without a feature it is the only one.
func (o Options) managers(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme, controllers []string, s setting) ([]manager.Manager, error) {
	var all []manager.Manager
	if len(controllers) == 0 {
		controllers = []string{""}
	}
	for i, name := range controllers {
		if i > 0 {
			o.Process = o.Process.WithoutEndpoints()
		}
		mgr, err := manager.New(s.limited(cfg, name), o.manager(scheme, name))
		if err != nil {
			return nil, fmt.Errorf("make the manager: %w", err)
		}
		if name != "" {
			if err := add[name](ctx, mgr, s); err != nil {
				return nil, fmt.Errorf("set up %s: %w", name, err)
			}
		}
		all = append(all, mgr)
	}
	return all, errors.Join(all[0].AddHealthzCheck("ping", healthz.Ping), all[0].AddReadyzCheck("cache", synced(all)))
}

// start runs all managers until the context or one of them ends: a manager that has lost its lease ends the process.
func start(ctx context.Context, managers []manager.Manager) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error)
	for _, mgr := range managers {
		go func() { ends <- mgr.Start(ctx) }()
	}
	var errs []error
	for range managers {
		errs = append(errs, <-ends)
		cancel()
	}
	return errors.Join(errs...)
}

// bookkeepingPerSecond bounds the requests for the manager's own kinds, such as statuses and the upgrades of a trigger;
// the limiter bounds the requests for migrated objects.
const bookkeepingPerSecond = 20

// bookkeeping returns the rate of these requests for a client. A limit that allows more writes also allows more of
// them, so that they do not delay the writes.
func (l Limits) bookkeeping() float32 {
	writes := l.walk().MaxWritesPerSecond
	if writes == 0 {
		return -1 // no limit
	}
	return float32(max(bookkeepingPerSecond, writes))
}

// clusterMigrationPerSecond bounds the requests of ClusterMigration. It reads the state of a migration for each message, and
// writes no object but its own; the agents of hubs have the same bound.
const clusterMigrationPerSecond = 200

// limited returns the configuration of the cluster with the bounds of a feature.
func (s setting) limited(cfg *rest.Config, controller string) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	if cfg.QPS = s.Limits.bookkeeping(); controller == ClusterMigration {
		cfg.QPS = clusterMigrationPerSecond
	}
	cfg.Burst = int(2 * cfg.QPS)
	return cfg
}

// setting has what the controllers of all features share.
type setting struct {
	Configuration
	limiter   *walk.Limiter
	namespace string // of the manager
	kafka     *kafka.Options
}

// add registers the controllers of a feature.
var add = map[string]func(context.Context, manager.Manager, setting) error{
	StorageVersionMigrator: addStorageVersionMigrator,
	RevisionUpgrader:       addRevisionUpgrader,
	ClusterMigration:       addClusterMigration,
}

// installed returns an error that names a missing kind: controller-runtime would wait for it with an unclear message.
// Other errors show when the caches are filled.
func installed(mapper meta.RESTMapper, kinds ...string) error {
	for _, name := range kinds {
		kind := v1alpha1.GroupVersion.WithKind(name)
		if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			return fmt.Errorf("the kind %s of %s is not installed: kubectl apply --server-side -f crds.yaml, a file of the release, or install the chart with crds.enabled=true", kind.Kind, kind.GroupVersion())
		}
	}
	return nil
}

func (o Options) manager(scheme *runtime.Scheme, controller string) manager.Options {
	lease := ""
	if controller != "" {
		lease = leaderElectionID(controller)
	}
	m := o.Process.Manager(scheme, lease)
	m.Cache = cache.Options{DefaultTransform: revisionupgrade.NewCacheTransform()}
	return m
}

// addStorageVersionMigrator registers both of its reconcilers.
func addStorageVersionMigrator(_ context.Context, mgr manager.Manager, s setting) error {
	if err := installed(mgr.GetRESTMapper(), "CRDMigration"); err != nil {
		return err
	}
	instance := crdmigration.InstanceID(s.namespace)
	scope, err := s.StorageVersionMigrator.scope()
	if err != nil {
		return err
	}
	counted := crdmigration.NewMetrics(s.limiter)
	if err := counted.Register(metrics.Registry); err != nil {
		return err
	}
	cfg := rest.CopyConfig(mgr.GetConfig())
	cfg.Wrap(counted.RoundTripper)
	looking := s.limiter.Narrow(walk.Limits{}) // where a conversion webhook is away, looking slows down alone
	planner, err := storageversion.New(cfg, storageversion.Options{Limiter: looking})
	if err != nil {
		return err
	}
	scanner, err := storageversion.New(cfg, storageversion.Options{Limiter: looking, Scan: true})
	if err != nil {
		return err
	}
	err = (&crdmigration.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Config: cfg, Recorder: mgr.GetEventRecorder("godwit"),
		Defaults: s.StorageVersionMigrator.Defaults, Limiter: s.limiter, MaxWritesPerSecond: s.Limits.walk().MaxWritesPerSecond, Metrics: counted,
		Instance: instance, InScope: func(crd metav1.Object) bool { return scope.Holds(crd) },
	}).SetupWithManager(mgr)
	if err != nil {
		return err
	}
	err = (&crdscope.Reconciler{
		Client: mgr.GetClient(), Scope: scope, Instance: instance, Planner: planner, Scanner: scanner,
	}).SetupWithManager(mgr)
	if err != nil {
		return err
	}
	return observeCRDs(mgr, scope)
}

// observeCRDs registers the metrics of CRDs and their migrations.
func observeCRDs(mgr manager.Manager, scope crdscope.Scope) error {
	inventory := &crdinventory.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), InScope: func(crd metav1.Object) bool { return scope.Holds(crd) },
	}
	return errors.Join(
		inventory.SetupWithManager(mgr),
		crdinventory.NewMetrics(inventory).Register(metrics.Registry),
		crdmigration.NewStates(mgr.GetClient()).Register(metrics.Registry),
		stalled.NewMetrics("CRDMigration", stalled.Of(mgr.GetClient(), &v1alpha1.CRDMigrationList{})).Register(metrics.Registry),
	)
}

// addRevisionUpgrader registers both of its reconcilers, for the only family.
func addRevisionUpgrader(_ context.Context, mgr manager.Manager, s setting) error {
	if err := installed(mgr.GetRESTMapper(), "ControllerRevisionUpgrade", "ControllerRevisionUpgradeTrigger"); err != nil {
		return err
	}
	upgrader, err := revision.New(mgr.GetConfig(), kubevirt.Family{}, revision.Options{Limiter: s.limiter})
	if err != nil {
		return err
	}
	err = errors.Join(
		revisionupgrade.NewMetrics(mgr.GetClient()).Register(metrics.Registry),
		stalled.NewMetrics("ControllerRevisionUpgrade", revisionupgrade.Stalled(mgr.GetClient())).Register(metrics.Registry),
		stalled.NewMetrics("ControllerRevisionUpgradeTrigger", stalled.Of(mgr.GetClient(), &v1alpha1.ControllerRevisionUpgradeTriggerList{})).Register(metrics.Registry),
	)
	if err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder("godwit")
	triggers := &revisionupgrade.Triggers{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: recorder, Upgrader: upgrader, Clock: clock.RealClock{},
		MaxWritesPerSecond: s.Limits.walk().MaxWritesPerSecond,
	}
	if every := s.RevisionUpgrader.ScanEvery; every != nil {
		triggers.ScanEvery = every.Duration
	}
	upgrades := &revisionupgrade.Upgrades{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: recorder, Upgrader: upgrader, Clock: clock.RealClock{}}
	return errors.Join(triggers.SetupWithManager(mgr), upgrades.SetupWithManager(mgr))
}

// addClusterMigration registers the manager's side of migrations of managed clusters.
func addClusterMigration(ctx context.Context, mgr manager.Manager, s setting) error {
	if s.namespace == "" {
		return errors.New("specify the namespace of the manager, which has its keys: outside a cluster, --leader-elect-namespace=NAMESPACE")
	}
	if s.kafka != nil {
		return clustermigration.Setup(ctx, mgr, s.namespace, s.ClusterMigration.Namespaces, *s.kafka)
	}
	names := broker.Keys(clusterMigrationKafka)
	if err := s.ClusterMigration.Kafka.Validate(names); err != nil {
		return err
	}
	brokers, err := s.ClusterMigration.Kafka.Options(kafkaClient, names)
	if err != nil {
		return err
	}
	return clustermigration.Setup(ctx, mgr, s.namespace, s.ClusterMigration.Namespaces, brokers)
}

// synced returns a readiness check that passes when all caches are filled.
func synced(managers []manager.Manager) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		for _, mgr := range managers {
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the caches are not filled yet")
			}
		}
		return nil
	}
}
