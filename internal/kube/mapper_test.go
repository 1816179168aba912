package kube_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
)

// starting is an API server that lists the kind Widget some requests after its start.
type starting struct {
	// ready is the code of /readyz.
	ready int
	// incomplete is how many lists of groups lack example.com.
	incomplete int
}

const (
	noGroups   = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`
	groups     = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`
	widgetList = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["get"]}]}`
)

func (s *starting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/readyz":
		w.WriteHeader(s.ready)
	case "/api":
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		if s.incomplete--; s.incomplete >= 0 {
			_, _ = io.WriteString(w, noGroups)
			return
		}
		_, _ = io.WriteString(w, groups)
	case "/apis/example.com/v1":
		_, _ = io.WriteString(w, widgetList)
	default:
		http.NotFound(w, r)
	}
}

// TestMapper: a kind that discovery does not list is not served only where the server is ready.
func TestMapper(t *testing.T) {
	cases := map[string]struct {
		reason string
		server starting
		found  bool
		want   apierror.Treatment
	}{
		"listed":            {"readiness does not matter", starting{http.StatusInternalServerError, 0}, true, ""},
		"starting":          {"the next request may find it", starting{http.StatusInternalServerError, 9}, false, apierror.Retry},
		"just ready":        {"it became ready after the first look", starting{http.StatusOK, 1}, true, ""},
		"ready":             {"the kind is not served", starting{http.StatusOK, 9}, false, apierror.Confirm},
		"answers no client": {"a proxy forbids the path", starting{http.StatusForbidden, 9}, false, apierror.Confirm},
		"has no such path":  {"another server than Kubernetes's", starting{http.StatusNotFound, 9}, false, apierror.Confirm},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&tc.server)
			defer server.Close()
			cfg := &rest.Config{Host: server.URL}
			mapper, err := kube.NewMapper(cfg, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"})
			if (mapping != nil) != tc.found || apierror.TreatmentOf(err) != tc.want {
				t.Errorf("%+v, %v; want found %t, treatment %q: %s", mapping, err, tc.found, tc.want, tc.reason)
			}
			if tc.want == apierror.Confirm && !meta.IsNoMatchError(err) {
				t.Errorf("%v is not an error of a kind that is not served", err)
			}
		})
	}
}
