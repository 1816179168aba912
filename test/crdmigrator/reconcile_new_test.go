package crdmigrator_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// unservedAtFirst is an API server that answers 404 to the first request for each
// resource of a group, as it does until its watch has brought the CRD.
func unservedAtFirst(group string) func(http.RoundTripper) http.RoundTripper {
	var mu sync.Mutex
	asked := map[string]bool{}
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			first := strings.Contains(r.URL.Path, "/"+group+"/v1/") && !asked[r.URL.Path]
			asked[r.URL.Path] = true
			mu.Unlock()
			if !first {
				return next.RoundTrip(r)
			}
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource"}`
			return &http.Response{
				StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
			}, nil
		})
	}
}

// TestNewCRDIsNoErrorOfARunningOperator: the operator sees a CRD before the API server
// serves it.
func TestNewCRDIsNoErrorOfARunningOperator(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	said := &recorder{}
	o := newOperator(w, func(o *operator) {
		o.migrator.Selector, o.migrator.Recorder = crdmigrator.Selector{Group: w.group}, said
	}, func(cfg *rest.Config, _ *manager.Options) { cfg.Wrap(unservedAtFirst(w.group)) })
	o.start()
	<-o.manager.Elected()
	const n = 8
	for i := range n {
		crd := (&widgets{group: w.group, plural: fmt.Sprintf("gadgets%d", i), kind: fmt.Sprintf("Gadget%d", i), name: fmt.Sprintf("gadgets%d.%s", i, w.group)}).newCRD()
		crd.Labels = map[string]string{crdmigrator.AutoMigrateLabel: crdmigrator.AutoMigrateValue}
		if _, err := w.crds().Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "a list of the objects of each CRD", func() bool {
		listed := map[string]bool{}
		for _, r := range o.requests.matching(func(r string) bool {
			return strings.HasPrefix(r, http.MethodGet) && strings.Contains(r+"&", "limit=50&")
		}) {
			path, _, _ := strings.Cut(r, "?")
			listed[path] = true
		}
		return len(listed) == n
	})
	if errs := o.logs.errors(); len(errs) > 0 {
		t.Errorf("logged as errors: %q", errs)
	}
	if warnings := said.warnings(); len(warnings) > 0 {
		t.Errorf("warned: %+v", warnings)
	}
}
