package walk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/internal/apierror"
)

// An answer is slow if it takes longer than slowFactor times the floor and longer than slowAtLeast. The factor alone
// would count queueing in a fully used server as strain; the bound alone would count a webhook that is always slow.
const (
	slowFactor  = 8
	slowAtLeast = 500 * time.Millisecond
)

// answer has the signs of server strain in one exchange.
type answer struct {
	aborted    bool // the client ended the request: shows nothing
	missing    bool // no answer at all
	strained   bool
	broken     bool // by a backend of the server, such as a webhook, which other walks may not use
	retryAfter time.Duration
	sent       time.Time
	took       time.Duration // 0 for reads, which take time by their size
	group      string        // API group that was written to
	alone      bool          // no other request was in flight when the answer came
}

func answerOf(sent time.Time, req *http.Request, resp *http.Response, err error) answer {
	a := answer{sent: sent}
	if err != nil {
		a.aborted = aborted(req.Context(), sent)
		a.missing = !a.aborted
		return a
	}
	a.strained = resp.StatusCode == http.StatusTooManyRequests && !fillsCache(resp) || resp.StatusCode >= 500
	a.broken = resp.StatusCode == http.StatusInternalServerError
	if a.strained {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		a.retryAfter = min(time.Duration(seconds)*time.Second, maxDelay)
	}
	if writes(req) && !a.strained {
		a.took, a.group = time.Since(sent), groupOf(req.URL.Path)
	}
	return a
}

// aborted reports whether the client ended the request, so that the missing answer says nothing about the server. An
// exceeded deadline says something only if the server had enough time to answer.
func aborted(ctx context.Context, sent time.Time) bool {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return time.Since(sent) < slowAtLeast
	}
	return ctx.Err() != nil
}

// fillsCache reports whether a 429 means that the watch cache of a resource is not filled yet. This is not a sign of
// strain: the Retry-After is 1 s, but the API server fills the cache of a small resource in 0.1 s. The body can be read
// again.
func fillsCache(resp *http.Response) bool {
	start, err := io.ReadAll(io.LimitReader(resp.Body, cacheAnswerBytes))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), resp.Body}
	return apierror.FillsCache(string(start))
}

// cacheAnswerBytes is an upper bound of the answer that says that a cache is not filled.
const cacheAnswerBytes = 4 << 10

// failing is a reader for the rest of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// writes reports whether a request may change an object. A posted review does not.
func writes(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		return false
	case http.MethodPost:
		return !strings.HasSuffix(req.URL.Path, "reviews")
	}
	return true
}

// groupOf returns the API group in a request's path. It returns empty for the core group, and for a path without a
// resource.
func groupOf(path string) string {
	_, after, _ := strings.Cut(path, "/apis/")
	group, _, _ := strings.Cut(after, "/")
	return group
}
