package crdmigrator_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// operator is an operator that embeds the migrator, on one CRD of a test.
type operator struct {
	t        *testing.T
	w        *widgets
	manager  manager.Manager
	migrator *crdmigrator.CRDMigrator
	requests *requestLog
	logs     *logLines
}

// newOperator makes an operator that has not started. configure changes the operator,
// manage the options of its manager.
func newOperator(w *widgets, configure func(*operator), manage ...func(*rest.Config, *manager.Options)) *operator {
	w.t.Helper()
	return newOperatorAs(w, w.config, configure, manage...)
}

// newOperatorAs makes an operator with a user of its own.
func newOperatorAs(w *widgets, user *rest.Config, configure func(*operator), manage ...func(*rest.Config, *manager.Options)) *operator {
	w.t.Helper()
	o := &operator{t: w.t, w: w, requests: &requestLog{}, logs: &logLines{}, migrator: &crdmigrator.CRDMigrator{Settle: quickSettle.Settle}}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		o.t.Fatal(err)
	}
	cfg := rest.CopyConfig(user)
	options := manager.Options{
		Scheme:     scheme,
		Logger:     o.logs.logger(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // many managers in one process
	}
	for _, change := range manage {
		change(cfg, &options)
	}
	cfg.Wrap(o.requests.of)
	var err error
	if o.manager, err = manager.New(cfg, options); err != nil {
		o.t.Fatal(err)
	}
	o.migrator.Client, o.migrator.APIReader = o.manager.GetClient(), o.manager.GetAPIReader()
	configure(o)
	if err := o.migrator.SetupWithManager(o.t.Context(), o.manager, controller.Options{}); err != nil {
		o.t.Fatal(err)
	}
	return o
}

// start runs the manager until the test ends or stop is called.
func (o *operator) start() (stop func()) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.manager.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			o.t.Error(err)
		}
	})
	o.t.Cleanup(stop)
	return stop
}

func (o *operator) awaitAnnotation(key, value string) {
	o.t.Helper()
	await(o.t, key+"="+value, func() bool { return o.w.crd().Annotations[key] == value })
}

// requestLog records the requests of a process to the API server.
type requestLog struct {
	mu       sync.Mutex
	requests []string // method and path
}

func (l *requestLog) of(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		l.mu.Lock()
		l.requests = append(l.requests, r.Method+" "+r.URL.RequestURI())
		l.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// matching returns the requests for which keep is true, in their order, without those of preflights.
func (l *requestLog) matching(keep func(string) bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	planning := false
	return slices.DeleteFunc(slices.Clone(l.requests), func(s string) bool {
		switch {
		case strings.HasPrefix(s, "GET /apis/migration.k8s.io"): // the last that a plan reads before its preflight
			planning = true
		case strings.HasPrefix(s, "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/"): // the first that a run reads
			planning = false
		}
		list := planning && strings.HasPrefix(s, "GET ") && strings.Contains(s, ".example.com/")
		return list || strings.Contains(s, "dryRun=All") || !keep(s)
	})
}
