package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// inProcess is a provider in this process.
type inProcess struct {
	cancel context.CancelFunc
	done   chan struct{}
	dead   atomic.Bool
}

// passTimeout bounds the end of a pass of a killed provider: it gets errors from the API server, and could still call an
// external system in this process in a later step of the check.
const passTimeout = 10 * time.Second

var errDead = errors.New("the provider was killed")

func (p *inProcess) Kill() {
	p.dead.Store(true)
	p.cancel()
}

func (p *inProcess) Wait() { <-p.done }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// startManager starts a manager whose requests end when it is killed.
func (e *environment) startManager(ctx context.Context, setup func(manager.Manager) error) (running, error) {
	p := &inProcess{done: make(chan struct{})}
	cfg := rest.CopyConfig(e.harness.Config)
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if p.dead.Load() {
				return nil, errDead
			}
			return next.RoundTrip(req)
		})
	})
	options, err := e.managerOptions()
	if err != nil {
		return nil, err
	}
	m, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("make a manager: %w", err)
	}
	if err := setup(m); err != nil {
		return nil, fmt.Errorf("set up the provider: %w", err)
	}
	ctx, p.cancel = context.WithCancel(ctx)
	go func() {
		defer close(p.done)
		_ = m.Start(ctx) // A manager that is killed ends with an error.
	}()
	return p, nil
}

func (e *environment) managerOptions() (manager.Options, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return manager.Options{}, err
	}
	if e.provider.AddToScheme != nil {
		if err := e.provider.AddToScheme(scheme); err != nil {
			return manager.Options{}, fmt.Errorf("add the types of the provider: %w", err)
		}
	}
	skip, inFlight := true, passTimeout
	options := manager.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: &skip},
		GracefulShutdownTimeout: &inFlight,
	}
	if e.namespaced {
		options.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{e.namespace: {}}}
	}
	return options, nil
}

// setUpClient adds a controller with crossplane-runtime's reconciler and a bare client.
func (e *environment) setUpClient(m manager.Manager) error {
	connector, err := e.provider.Client(m)
	if err != nil {
		return err
	}
	gvk := e.provider.Kind
	object, err := m.GetScheme().New(gvk)
	if err != nil {
		return err
	}
	kind, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", object)
	}
	name := managed.ControllerName(gvk.GroupKind().String())
	recorder := event.NewAPIRecorder(m.GetEventRecorderFor(name))
	reconcilerOptions := []managed.ReconcilerOption{
		managed.WithExternalConnector(connector),
		managed.WithManagementPolicies(),
		managed.WithInitializers(crossplane.DefaultInitializers(m.GetClient())...),
		managed.WithRecorder(recorder),
		managed.WithPollInterval(e.harness.Poll),
		managed.WithCreationGracePeriod(time.Millisecond),
	}
	if e.provider.Options != nil {
		reconcilerOptions = append(reconcilerOptions, e.provider.Options(m)...)
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](e.harness.Poll/10, 5*e.harness.Poll)
	return ctrl.NewControllerManagedBy(m).
		Named(name).
		WithOptions(controller.Options{RateLimiter: limiter}).
		WithEventFilter(resource.DesiredStateChanged()).
		For(kind).
		Complete(managed.NewReconciler(m, resource.ManagedKind(gvk), reconcilerOptions...))
}
