package etcd

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	cases := map[string]struct {
		status int
		body   string
		want   string
	}{
		"etcd without a leader":      {200, `{"etcdserver":"3.7.1","etcdcluster":"3.7.0"}`, "is an etcd 3.7.1 that does not answer reads"},
		"an API server":              {200, `{"major":"1","gitVersion":"v1.37.1"}`, "is a Kubernetes API server"},
		"an API server that refuses": {403, `{"kind":"Status","reason":"Forbidden"}`, "is a Kubernetes API server"},
		"https on http":              {400, "Client sent an HTTP request to an HTTPS server.\n", "uses https"},
		"a web server":               {404, "<html>", "is an HTTP server (it answers 404 Not Found), not etcd"},
		"a web server's JSON":        {200, `[1]`, "is an HTTP server (it answers 200 OK), not etcd"},
	}
	for name, tc := range cases {
		resp := &http.Response{StatusCode: tc.status, Status: fmt.Sprint(tc.status, " ", http.StatusText(tc.status))}
		if got := identify(resp, []byte(tc.body)); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: identify() = %q, want %q", name, got, tc.want)
		}
	}
}

func TestServersAreChecked(t *testing.T) {
	cases := map[string]struct {
		options Options
		ok      bool
	}{
		"http":               {Options{Servers: []string{"http://127.0.0.1:2379"}}, true},
		"https with files":   {Options{Servers: []string{"https://a:2379", "https://b:2379"}, CAFile: "ca", CertFile: "c", KeyFile: "k"}, true},
		"no scheme":          {Options{Servers: []string{"127.0.0.1:2379"}}, false},
		"another scheme":     {Options{Servers: []string{"unix:///run/etcd"}}, false},
		"http with TLS":      {Options{Servers: []string{"http://a:2379"}, CAFile: "ca"}, false},
		"half a client pair": {Options{Servers: []string{"https://a:2379"}, KeyFile: "k"}, false},
	}
	for name, tc := range cases {
		if err := tc.options.checkServers(); (err == nil) != tc.ok {
			t.Errorf("%s: checkServers() = %v", name, err)
		}
	}
}
