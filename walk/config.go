package walk

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// requestTimeout is longer than the API server's own 60 s, so that the API server can report a timeout. It ends a
// request to a server that no longer answers.
const requestTimeout = 70 * time.Second

// Config returns a copy of cfg for clients that only the limiter paces.
func (l *Limiter) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // no rate limit by client-go
	cfg.RateLimiter = nil
	if cfg.UserAgent == "" {
		cfg.UserAgent = "godwit"
	}
	if cfg.Timeout == 0 {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return deadline{next: next, limit: requestTimeout} })
	}
	cfg.Wrap(l.RoundTripper)
	return cfg
}

// deadline bounds one exchange. Unlike the timeout of an http.Client, it starts when the request is sent, not while it
// waits for its turn.
type deadline struct {
	next  http.RoundTripper
	limit time.Duration
}

func (d deadline) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), d.limit)
	resp, err := d.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = bodyWithin{resp.Body, cancel}
	return resp, nil
}

// bodyWithin ends the deadline's context once the answer is read.
type bodyWithin struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b bodyWithin) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
