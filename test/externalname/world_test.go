package externalname_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

const (
	// pollEvery is how often a resource is observed in these tests.
	pollEvery = 200 * time.Millisecond
	// awaitLimit is for a busy machine.
	awaitLimit = 3 * time.Minute
)

// world is a namespace, a directory, and what a provider has recorded.
type world struct {
	t         *testing.T
	namespace string
	store     store
	memory    *memory // The store, unless it is on a directory server.
	wire      *wire
	client    client.Client
	events    *recorder
}

// worlds counts the worlds, whose directories have different IDs.
var worlds atomic.Int64

func newWorld(t *testing.T) *world {
	t.Parallel()
	c, err := client.New(shared.Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "names-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, namespace: namespace.Name, client: c, events: &recorder{}}
	if onSlapd(t) {
		w.store = ldapStore{newBase(t, namespace.Name)}
	} else {
		w.memory = newMemory()
		w.memory.number = worlds.Add(1)
		w.store = w.memory
	}
	w.wire = newWire(w.store)
	return w
}

// recorder keeps events, which an API server would aggregate.
type recorder struct {
	mu   sync.Mutex
	list []event.Event
}

func (r *recorder) Event(_ runtime.Object, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

func (r *recorder) WithAnnotations(...string) event.Recorder { return r }

// with returns the messages of the events that have a reason.
func (r *recorder) with(reason string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var messages []string
	for _, e := range r.list {
		if string(e.Reason) == reason {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// process is a provider. It can be killed as a machine dies: no request leaves it any more.
type process struct {
	cancel context.CancelFunc
	done   chan struct{}
	dead   atomic.Bool
	// cut is asked before each write to the API server, and stops it with an error.
	cut atomic.Pointer[func(*http.Request) error]
	// answered is told each answer of the API server.
	answered atomic.Pointer[func(*http.Request, *http.Response)]
}

var errDead = errors.New("the process is dead")

func (p *process) config() *rest.Config {
	cfg := shared.Config()
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if p.dead.Load() {
				return nil, errDead
			}
			if cut := p.cut.Load(); cut != nil && req.Method != http.MethodGet {
				if err := (*cut)(req); err != nil {
					return nil, err
				}
			}
			answer, err := next.RoundTrip(req)
			if answered := p.answered.Load(); answered != nil && err == nil {
				(*answered)(req, answer)
			}
			return answer, err
		})
	})
	return cfg
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (p *process) kill() {
	p.dead.Store(true)
	p.cancel()
}

func (p *process) stop() {
	p.cancel()
	<-p.done
}

// options are those of one run of a provider.
type options struct {
	newClient client.NewClientFunc
	further   []managed.ReconcilerOption
}

// run starts a provider of the kind with the test's rate limits, until the test ends.
func run[M resource.Managed, K, X any](w *world, r crossplane.Resource[M, K, X], o options) *process {
	w.t.Helper()
	return w.manage(o, func(m manager.Manager) ([]managed.ReconcilerOption, error) { return r.Options(m, w.events) }, r.Kind)
}

// manage starts a manager with one managed reconciler, whose retries come soon.
func (w *world) manage(o options, reconcilerOptions func(manager.Manager) ([]managed.ReconcilerOption, error), gvk schema.GroupVersionKind) *process {
	w.t.Helper()
	return w.start(o, func(m manager.Manager) error {
		list, err := reconcilerOptions(m)
		if err != nil {
			return err
		}
		return addController(m, gvk, append(list, o.further...)...)
	})
}

// addController adds a managed reconciler that polls often and retries soon.
func addController(m manager.Manager, gvk schema.GroupVersionKind, list ...managed.ReconcilerOption) error {
	quick := []managed.ReconcilerOption{managed.WithPollInterval(pollEvery), managed.WithCreationGracePeriod(time.Millisecond)}
	kindObject, err := m.GetScheme().New(gvk)
	if err != nil {
		return err
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, 500*time.Millisecond)
	return ctrl.NewControllerManagedBy(m).
		Named(managed.ControllerName(gvk.Kind)).
		WithOptions(controller.Options{RateLimiter: limiter}).
		WithEventFilter(resource.DesiredStateChanged()).
		For(kindObject.(client.Object)).
		Complete(managed.NewReconciler(m, resource.ManagedKind(gvk), append(quick, list...)...))
}

// start starts a manager until the test ends.
func (w *world) start(o options, setup func(manager.Manager) error) *process {
	w.t.Helper()
	skip, priority := true, false // With many objects and short polls, a queue with priorities never reaches those of the first list.
	stopAtOnce := time.Duration(0)
	p := &process{done: make(chan struct{})}
	m, err := ctrl.NewManager(p.config(), manager.Options{
		Scheme:                  newScheme(),
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: &skip, UsePriorityQueue: &priority},
		GracefulShutdownTimeout: &stopAtOnce,
		NewClient:               o.newClient,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := setup(m); err != nil {
		w.t.Fatal(err)
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(w.t.Context()))
	go func() {
		defer close(p.done)
		_ = m.Start(ctx) // A killed manager ends with an error.
	}()
	w.t.Cleanup(p.stop)
	return p
}

func (w *world) person(name string, change func(*person)) *person {
	w.t.Helper()
	p := &person{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	p.Spec.ManagedResourceSpec, p.Spec.ForProvider = spec(), personParameters{Name: name}
	if change != nil {
		change(p)
	}
	w.create(p)
	return p
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func named(name string, policies ...xpv2.ManagementAction) func(*person) {
	return func(p *person) {
		if name != "" {
			meta.SetExternalName(p, name)
		}
		p.Spec.ManagementPolicies = policies
	}
}

// get reads the object from the API server.
func get[T client.Object](w *world, o T) T {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// patch merges a JSON document into the object, as kubectl patch does.
func (w *world) patch(o client.Object, body string) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

// annotate sets an annotation, or removes it if the value is empty.
func (w *world) annotate(o client.Object, key, value string) {
	w.t.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	w.patch(o, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, text))
}

func (w *world) delete(o client.Object) {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// await waits until check returns an empty string, which otherwise says what is missing.
func (w *world) await(what string, check func() string) {
	w.t.Helper()
	pause, deadline := 20*time.Millisecond, time.Now().Add(awaitLimit)
	for {
		missing := check()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: %s\nevents: %+v\nentries: %+v", what, missing, w.events.list, w.store.all())
		}
		time.Sleep(pause)
		pause = min(pause*3/2, 200*time.Millisecond)
	}
}

// awaitPerson waits until the person fits.
func (w *world) awaitPerson(p *person, what string, fits func(*person) bool) {
	w.t.Helper()
	w.await(what, func() string {
		if fits(get(w, p)) {
			return ""
		}
		return fmt.Sprintf("annotations %v, conditions %+v", p.Annotations, p.Status.Conditions)
	})
}

// awaitGone waits until the object is deleted.
func (w *world) awaitGone(o client.Object) {
	w.t.Helper()
	w.await("deletion", func() string {
		err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
		if kerrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint(o.GetFinalizers(), err)
	})
}

// passes waits for that many further observations of the directory.
func (w *world) passes(n int) {
	w.t.Helper()
	from := w.wire.count("Read")
	w.await("observations", func() string {
		if seen := w.wire.count("Read"); seen < from+n {
			return fmt.Sprintf("%d of %d", seen-from, n)
		}
		return ""
	})
}

func synced(o resource.Conditioned) bool {
	return o.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionTrue
}

func ready(o resource.Conditioned) bool {
	return o.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// failing reports whether the object is not synced, for a reason that has the text.
func failing(text string) func(*person) bool {
	return func(p *person) bool {
		c := p.GetCondition(xpv2.TypeSynced)
		return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, text)
	}
}

func bound(p *person) bool {
	return synced(p) && meta.GetExternalName(p) != "" && p.Annotations[crossplane.AnnotationBoundName] == meta.GetExternalName(p)
}

// checkClean says that nothing of a creation is left in the annotations.
func (w *world) checkClean(o client.Object) {
	w.t.Helper()
	for _, key := range []string{crossplane.AnnotationToken, crossplane.AnnotationOperation, crossplane.AnnotationPendingName, meta.AnnotationKeyExternalCreatePending} {
		if value, ok := o.GetAnnotations()[key]; ok {
			w.t.Errorf("annotation %s=%s is left", key, value)
		}
	}
}

// checkEntries compares how many entries exist.
func (w *world) checkEntries(want int) {
	w.t.Helper()
	if all := w.store.all(); len(all) != want {
		w.t.Errorf("%d entries exist, want %d: %+v", len(all), want, all)
	}
}
