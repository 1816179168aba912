package crdmigrator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// selectorPermissions are all that a CRDMigrator with a Selector needs for one kind in
// the whole cluster. It also lists leases in kube-system, and its recorder writes events
// in the namespace default.
func (w *widgets) selectorPermissions() []permission {
	return []permission{
		readCRD,
		{"list", crdsGroup, "customresourcedefinitions"},
		{"watch", crdsGroup, "customresourcedefinitions"},
		{"patch", crdsGroup, "customresourcedefinitions"},
		{"patch", crdsGroup, "customresourcedefinitions/status"},
		{"get", w.group, w.plural},
		{"list", w.group, w.plural},
		{"update", w.group, w.plural},
	}
}

// between intercepts requests of an operator to the API server.
type between = func(http.RoundTripper) http.RoundTripper

// selecting makes an operator that migrates labelled CRDs of the group. Its user may not
// read leases, so that only the settle time decides when it begins: at once.
func (w *widgets) selecting(configure func(*operator), wire ...between) *operator {
	w.t.Helper()
	_, config := w.user(w.selectorPermissions()...)
	return w.selectingAs(config, configure, wire...)
}

func (w *widgets) selectingAs(user *rest.Config, configure func(*operator), wire ...between) *operator {
	w.t.Helper()
	for _, b := range wire {
		user.Wrap(b)
	}
	return newOperatorAs(w, user, func(o *operator) {
		o.migrator.Selector = crdmigrator.Selector{Group: w.group}
		if configure != nil {
			configure(o)
		}
	})
}

func (w *widgets) optIn() {
	w.t.Helper()
	w.label(crdmigrator.AutoMigrateLabel, crdmigrator.AutoMigrateValue)
}

// reconcile reconciles once, as the queue of a running manager would.
func (o *operator) reconcile(ctx context.Context) (reconcile.Result, error) {
	return o.migrator.Reconcile(log.IntoContext(ctx, o.logs.logger()), reconcile.Request{NamespacedName: types.NamespacedName{Name: o.w.name}})
}

// mustReconcile wants a result; the zero result means that nothing is left.
func (o *operator) mustReconcile(reason string, want reconcile.Result) {
	o.t.Helper()
	got, err := o.reconcile(o.t.Context())
	if err != nil {
		o.t.Fatalf("%s: %v", reason, err)
	}
	if got != want {
		o.t.Errorf("%s: %+v, want %+v", reason, got, want)
	}
}

// writes returns all requests that change something in the cluster.
func (o *operator) writes() []string {
	return o.requests.matching(func(r string) bool {
		return !strings.HasPrefix(r, "GET ") && !strings.HasPrefix(r, "POST /apis/authorization.k8s.io/")
	})
}

// mustWriteNothing checks that no object, CRD or event was written.
func (o *operator) mustWriteNothing(reason string) {
	o.t.Helper()
	if writes := o.writes(); len(writes) > 0 {
		o.t.Errorf("%s: writes = %q, want none", reason, writes)
	}
}

// updates counts the updates that were sent to objects of the group, or to one.
func (o *operator) updates(names ...string) int {
	return len(o.requests.matching(func(r string) bool {
		object := strings.HasPrefix(r, "PUT /apis/"+o.w.group+"/")
		return object && (len(names) == 0 || strings.Contains(r, "/"+names[0]+"?"))
	}))
}

// updated is the object that a request updates.
func (w *widgets) updated(r *http.Request) (name string, ok bool) {
	return path.Base(r.URL.Path), r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/apis/"+w.group+"/")
}

// haltAt holds every update of objects from name on, until the halt is released.
func (w *widgets) haltAt(name string) (*halt, between) {
	h, once := newHalt(w.t), sync.Once{}
	return h, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if object, ok := w.updated(r); ok && object >= name {
				once.Do(func() { close(h.reached) })
				<-h.released
			}
			return next.RoundTrip(r)
		})
	}
}

// conflicting answers updates of one object with a conflict while it is on, as the API
// server does after a write of another client.
func (w *widgets) conflicting(name string, on func() bool) between {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if object, ok := w.updated(r); !ok || object != name || !on() {
				return next.RoundTrip(r)
			}
			return answer(r, apierrors.NewConflict(schema.GroupResource{Group: w.group, Resource: w.plural}, name, nil))
		})
	}
}

func always() bool { return true }

func answer(r *http.Request, refusal *apierrors.StatusError) (*http.Response, error) {
	status := refusal.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: int(status.Code), Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// pass is a reconciliation in the background.
type pass struct {
	done   chan struct{}
	result reconcile.Result
	err    error
}

// passUntil begins a pass, and returns when it waits at the halt.
func (o *operator) passUntil(ctx context.Context, h *halt) *pass {
	o.t.Helper()
	p := &pass{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.result, p.err = o.reconcile(ctx)
	}()
	select {
	case <-h.reached:
	case <-p.done:
		o.t.Fatalf("the pass ended before it reached the halt: %+v, %v", p.result, p.err)
	}
	return p
}

func (p *pass) end() (reconcile.Result, error) {
	<-p.done
	return p.result, p.err
}
