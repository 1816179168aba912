package storageversion

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/walk"
)

// transport answers requests in place of an API server.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestTimeoutStartsWhenTheListIsSent proves that the time for which a list waits in the
// limiter does not count: the API server was not asked yet.
func TestTimeoutStartsWhenTheListIsSent(t *testing.T) {
	const never = time.Hour
	cases := map[string]struct {
		reason string
		wait   time.Duration // in the limiter, whose one turn another request has
		answer time.Duration // after the list is sent
		want   error
		sent   int
	}{
		"at once":           {"no wait, a quick answer", 0, time.Second, nil, 1},
		"a long wait":       {"the API server answers within a second of the question", time.Minute, time.Second, nil, 1},
		"a slow answer":     {"the answer has all of its time after the wait", time.Minute, 11 * time.Second, nil, 1},
		"no answer":         {"the list was sent, so that the API server is to blame", 0, never, quicklist.ErrOver, 1},
		"a wait, no answer": {"likewise", time.Minute, never, quicklist.ErrOver, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists := 0
				server := transport(func(req *http.Request) (*http.Response, error) {
					answer := time.After(tc.wait)
					if strings.HasSuffix(req.URL.Path, "/widgets") {
						lists++
						answer = time.After(tc.answer)
					}
					select {
					case <-answer:
					case <-req.Context().Done():
						return nil, req.Context().Err()
					}
					const none = `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "1"}}`
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(none))}, nil
				})
				m, err := New(&rest.Config{Host: "http://server", Transport: server}, Options{Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 1})})
				if err != nil {
					t.Fatal(err)
				}
				if tc.wait > 0 {
					go func() { _, _ = m.client.CRDMetadata(t.Context(), "other") }()
					synctest.Wait() // the other request has the turn
				}
				_, err = m.listOne(t.Context(), kubetest.Widgets())
				if !errors.Is(err, tc.want) || lists != tc.sent {
					t.Errorf("%s: %v after %d lists, want %v after %d", tc.reason, err, lists, tc.want, tc.sent)
				}
			})
		})
	}
}
