package walk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// TestTimeoutExcludesTheWaitForATurn shows that neither the HTTP client's own
// timeout nor the deadline of one exchange runs while a request waits for the
// limiter.
func TestTimeoutExcludesTheWaitForATurn(t *testing.T) {
	cfg := NewLimiter(Limits{}).Config(&rest.Config{Host: "http://127.0.0.1"})
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if c.Timeout != 0 {
		t.Errorf("the client's timeout is %s and includes the wait, want 0", c.Timeout)
	}
	synctest.Test(t, func(t *testing.T) {
		slow := NewLimiter(Limits{MaxWritesPerSecond: 0.1}).RoundTripper(deadline{next: answers{}, limit: time.Second})
		for range 3 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://server/x", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := slow.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	})
}

func TestRequestWithoutAnswerTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		resp, err := (deadline{next: noAnswer{}, limit: requestTimeout}).RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != requestTimeout {
			t.Errorf("RoundTrip: %v after %s, want %v after %s", err, time.Since(began), context.DeadlineExceeded, requestTimeout)
		}
	})
}

type answers struct{}

func (answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

type noAnswer struct{}

func (noAnswer) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}
