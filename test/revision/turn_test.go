package revision_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// slowClock runs 3 s further each time that it is read, as if requests waited for a crowded
// limiter in between.
type slowClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *slowClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(3 * time.Second)
	return c.now
}

func (c *slowClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestRemovalThatGetsNoTurnEndsThePass: no deletion can be sent while its scan is young. The
// pass ends after a few scans, keeps the old revision and says why; a later pass deletes it.
func TestRemovalThatGetsNoTurnEndsThePass(t *testing.T) {
	c := upgraded(t)
	c.later(2 * decision.DefaultRetention)
	var scans atomic.Int64
	cfg := intercept(shared.Config(), func(req *http.Request) *http.Response {
		if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/"+c.namespace+"/workloads") {
			scans.Add(1)
		}
		return nil
	})
	u, err := revision.New(cfg, testFamily{}, revision.Options{Clock: &slowClock{now: c.clock.Now()}})
	c.must(u, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	results, err := u.Advance(ctx, c.namespace, []revision.Request{{Name: "app-preset"}})
	c.must(results, err)
	r := results[0]
	if r.Phase != revision.Retained || r.Reason != decision.ReasonRateLimited || r.Until.IsZero() {
		t.Errorf("%s (%s: %s) until %s, want Retained (RateLimited)", r.Phase, r.Reason, r.Message, r.Until)
	}
	if n := scans.Load(); n < 3 || n > 6 {
		t.Errorf("%d scans, want one for the plan, one for the release and a few to delete by", n)
	}
	c.mustEnd(revision.Request{Name: "app-preset"}, revision.Succeeded, nil)
	c.mustHave("app-preset-v2")
}

// TestRepointThatAWebhookFailsNamesIt: a webhook that is away fails each write of a referrer.
// What the API server says of it is what a user needs to know.
func TestRepointThatAWebhookFailsNamesIt(t *testing.T) {
	c := newNamespace(t)
	c.store("app-preset", "Preset", c.workload("app", both("app-preset")), `{"minutes":1}`)
	cfg := intercept(shared.Config(), func(req *http.Request) *http.Response {
		if req.Method != http.MethodPatch {
			return nil
		}
		return status(http.StatusInternalServerError, `failed calling webhook \"guard.presets.example.com\"`)
	})
	results, err := c.upgrader(cfg, decision.Policy{}).Advance(t.Context(), c.namespace, []revision.Request{{Name: "app-preset"}})
	c.must(results, err)
	r := results[0]
	if r.Phase != revision.InUse || r.Reason != decision.ReasonUnanswered {
		t.Errorf("%s (%s), want InUse (Unanswered)", r.Phase, r.Reason)
	}
	for _, want := range []string{`failed calling webhook "guard.presets.example.com"`, "Workload app", "/spec/preset/revision"} {
		if !strings.Contains(r.Message, want) {
			t.Errorf("%q does not say %q", r.Message, want)
		}
	}
	c.mustRefer("app", both("app-preset"))
}

// intercept shows each request to a function, which may answer it.
func intercept(cfg *rest.Config, see func(*http.Request) *http.Response) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			if answer := see(req); answer != nil {
				return answer, nil
			}
			return next.RoundTrip(req)
		})
	})
	return cfg
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// status is an answer of the API server that says why it failed.
func status(code int, message string) *http.Response {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"` + message + `","code":` + strconv.Itoa(code) + `}`
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}
