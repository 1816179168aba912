package revision_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// startingServer answers 403 to the first request of each kind, as an API server does that has
// not read its roles yet.
type startingServer struct {
	next http.RoundTripper

	mu      sync.Mutex
	seen    map[string]bool
	refused int
}

func (s *startingServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if path := req.URL.Path; !strings.Contains(path, "/namespaces/") || !s.refuse(req.Method+" "+path) {
		return s.next.RoundTrip(req)
	}
	message := `controllerrevisions.apps is forbidden: User "alice" cannot list resource "controllerrevisions" in API group "apps" in the namespace "default"`
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":%q}`, message)
	return &http.Response{
		StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}, nil
}

func (s *startingServer) refuse(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[kind] {
		return false
	}
	s.seen[kind] = true
	s.refused++
	return true
}

// TestForbiddenOfAStartingServerIsTriedAgain: neither an upgrade nor a deletion fails.
func TestForbiddenOfAStartingServerIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := newNamespace(t)
	c.app()
	for _, want := range []revision.Phase{revision.Retained, revision.Succeeded} {
		cfg := rest.CopyConfig(shared.Config())
		var server *startingServer
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			server = &startingServer{next: next, seen: map[string]bool{}}
			return server
		})
		results := map[string]revision.Result{}
		_, err := c.upgrader(cfg, decision.Policy{}).Run(t.Context(), revision.Scope{Namespace: c.namespace}, func(r revision.Result) { results[r.Name] = r })
		if err != nil || len(results) != 2 {
			t.Fatalf("%d results, error %v", len(results), err)
		}
		for name, r := range results {
			if r.Phase != want {
				t.Errorf("%s is %s (%s: %s), want %s", name, r.Phase, r.Reason, r.Message, want)
			}
		}
		if server.refused == 0 {
			t.Error("the server refused nothing")
		}
		c.clock.SetTime(c.clock.Now().Add(2 * decision.DefaultRetention))
	}
}
