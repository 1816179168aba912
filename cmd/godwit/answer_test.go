package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// brokenAnswers are what a proxy answers in place of the API server: to each request, or to each write that reaches etcd.
var brokenAnswers = map[string]struct {
	code int
	body string
	// to reports whether a request after the writes gets the answer.
	to func(*http.Request) bool
}{
	"unauthorized": {http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`, func(*http.Request) bool { return true }},
	"full":         {http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: mvcc: database space exceeded","code":500}`, isStored},
	"toolarge":     {http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: request is too large","code":500}`, func(r *http.Request) bool { return isStored(r) && strings.HasSuffix(r.URL.Path, "/w-000") }},
}

// proxy starts a proxy before the API server that answers otherwise after some writes, and writes a kubeconfig for it:
// proxy NAME ANSWER WRITES.
func proxy(ts *testscript.TestScript, args []string) error {
	name, broken := args[0], brokenAnswers[args[1]]
	after, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	config := clusterOf(ts).Config()
	target, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	if forward.Transport, err = rest.TransportFor(config); err != nil {
		return err
	}
	var writes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isStored(r) {
			writes.Add(1)
		}
		if writes.Load() > after && broken.to(r) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(broken.code)
			_, _ = w.Write([]byte(broken.body))
			return
		}
		forward.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	file := ts.MkAbs(name + ".kubeconfig")
	if err := controlplane.WriteKubeconfig(file, &rest.Config{Host: server.URL}); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(file), err)
	}
	return nil
}

// isStored reports whether a request writes to etcd.
func isStored(r *http.Request) bool {
	switch {
	case r.Method == http.MethodGet, r.URL.Query().Get("dryRun") != "":
		return false
	}
	return !strings.Contains(r.URL.Path, "/authorization.k8s.io/") && !strings.Contains(r.URL.Path, "/authentication.k8s.io/")
}
