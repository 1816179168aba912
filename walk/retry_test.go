package walk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/walk"
)

func TestTransient(t *testing.T) {
	unread := apierrors.NewInternalError(errors.New("unable to decode"))
	unread.ErrStatus.Reason = metav1.StatusReasonStoreReadError
	bare := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadGateway}}

	// The API server passes on etcd's errors without a reason.
	passedOn := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: message}}
	}

	cases := map[string]struct {
		reason string
		err    error
		want   bool
		delay  time.Duration
	}{
		"nothing": {reason: "there is nothing to retry"},
		"429 with a delay": {
			reason: "the server says when", err: apierrors.NewTooManyRequests("busy", 7),
			want: true, delay: 7 * time.Second,
		},
		"429 without": {
			reason: "priority and fairness may leave it out", err: apierrors.NewTooManyRequestsError("busy"), want: true,
		},
		"429 of a cache": {
			reason: "it is filled long before", err: apierrors.NewTooManyRequests("storage is (re)initializing", 1), want: true,
		},
		"500":             {reason: "an API server that restarts", err: status("500", ""), want: true},
		"502":             {reason: "a load balancer before it", err: status("502", ""), want: true},
		"502 without any": {reason: "no Kubernetes reason", err: bare, want: true},
		"503":             {reason: "not ready", err: status("503", "2"), want: true, delay: 2 * time.Second},
		"504":             {reason: "etcd is slow", err: status("504", ""), want: true},
		"server timeout": {
			reason: "a 500 that asks for a retry", err: apierrors.NewServerTimeout(birds, "list", 1),
			want: true, delay: time.Second,
		},
		"timeout": {
			reason: "the request took too long", err: apierrors.NewTimeoutError("slow", 0), want: true,
		},
		"wrapped": {
			reason: "actions wrap what they return", err: fmt.Errorf("rewrite a: %w", status("503", "2")),
			want: true, delay: 2 * time.Second,
		},
		"400":           {reason: "our mistake", err: status("400", "")},
		"401":           {reason: "a retry has the same credentials", err: status("401", "")},
		"403":           {reason: "a retry has the same permissions", err: status("403", "")},
		"404":           {reason: "the action handles it", err: status("404", "")},
		"409":           {reason: "only the action knows what it means", err: status("409", "")},
		"410":           {reason: "List handles it", err: expired("token")},
		"422":           {reason: "an invalid object stays invalid", err: status("422", "")},
		"undecodable":   {reason: "a retry reads the same object from etcd", err: unread},
		"garbled":       {reason: "a retry gets the same answer, which is no JSON", err: play(t.Context(), "garbled")},
		"refused":       {reason: "the server is about to start", err: play(t.Context(), "refused"), want: true},
		"reset":         {reason: "the server was stopped", err: play(t.Context(), "reset"), want: true},
		"eof":           {reason: "in the middle of an answer", err: play(t.Context(), "eof"), want: true},
		"timeout on us": {reason: "our own deadline for one request", err: play(t.Context(), "timeout"), want: true},
		"deadline":      {reason: "the same, bare", err: context.DeadlineExceeded, want: true},
		"canceled":      {reason: "the caller canceled the request", err: context.Canceled},
		"canceled, net": {reason: "the same, wrapped by net/http", err: &url.Error{Err: context.Canceled}},
		"http2 lost": {
			reason: "the ping got no answer", err: errors.New("http2: client connection lost"), want: true,
		},
		"goaway": {
			reason: "the server drains",
			err:    errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1"), want: true,
		},
		"too large": {
			reason: "a retry sends the same object", err: passedOn("etcdserver: request is too large"),
		},
		"too large to send": {
			reason: "as above, beyond what the API server sends to etcd",
			err:    passedOn("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2162754 vs. 2097152)"),
		},
		"no leader": {
			reason: "etcd elects a leader", err: passedOn("etcdserver: no leader"), want: true,
		},
		"any other error": {reason: "unknown faults are not worth the time", err: errors.New("boom")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			delay, again := walk.Transient(tc.err)
			if again != tc.want || delay != tc.delay {
				t.Errorf("%s: Transient(%v) = %v, %v; want %v, %v", tc.reason, tc.err, delay, again, tc.delay, tc.want)
			}
		})
	}
}

// TestTransientOnRealConnections takes its errors from the network.
func TestTransientOnRealConnections(t *testing.T) {
	hangUp := func(sent string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if sent == "" {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, sent)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	never := func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // to return would be an answer
	}
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		http2   bool
	}{
		"no answer":                   {"the server died with the request", hangUp(""), false},
		"half an answer":              {"the server died with the answer", hangUp("{"), false},
		"no answer over HTTP/2":       {"the stream is reset", hangUp(""), true},
		"half an answer over HTTP/2":  {"so is a list that outlasts the server's timeout", hangUp("{"), true},
		"closed port":                 {"between two processes of a server", nil, false},
		"closed port, over HTTP/2":    {"the same", nil, true},
		"a server that never answers": {"the client's own timeout", never, false},
		"nor over HTTP/2":             {"the same", never, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(tc.handler)
			srv.EnableHTTP2 = tc.http2
			srv.StartTLS()
			defer srv.Close()
			client := srv.Client()
			client.Timeout = time.Second // enough for a local server to answer, where one does
			if tc.handler == nil {
				srv.Close()
			}
			err := get(client, srv.URL)
			if err == nil {
				t.Fatal("the request succeeded")
			}
			if _, again := walk.Transient(fmt.Errorf("list: %w", err)); !again {
				t.Errorf("%s: Transient(%T %v) = false, want true", tc.reason, err, err)
			}
		})
	}
}

func get(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

func TestTransientDialTimeout(t *testing.T) {
	_, err := (&net.Dialer{Timeout: time.Nanosecond}).Dial("tcp", "192.0.2.1:443")
	if _, again := walk.Transient(err); !again {
		t.Errorf("Transient(%v) = false, want true", err)
	}
}

func TestBackoff(t *testing.T) {
	for attempt := 1; attempt < 100; attempt++ {
		for _, hint := range []time.Duration{0, time.Second, time.Hour} {
			d := walk.Backoff(attempt, hint)
			if least := min(hint, walk.MaxDelay); d < least || d > walk.MaxDelay || d < 100*time.Millisecond {
				t.Fatalf("attempt %d, hint %v: wait %v", attempt, hint, d)
			}
		}
	}
}

func TestRetry(t *testing.T) {
	cases := map[string]struct {
		reason string
		script script
		tries  int
		ok     bool
	}{
		"at once":           {"the plain case", script{"ok"}, 1, true},
		"after some faults": {"faults pass", script{"503", "eof", "429/3", "ok"}, 4, true},
		"never":             {"attempts are capped", script{"503"}, walk.DefaultAttempts, false},
		"for good":          {"a 403 does not pass", script{"503", "403"}, 2, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				err := walk.Retry(t.Context(), walk.DefaultAttempts, func(ctx context.Context) error {
					tries++
					return play(ctx, tc.script[min(tries, len(tc.script))-1])
				})
				if tries != tc.tries || (err == nil) != tc.ok {
					t.Errorf("%s: %d tries, %v; want %d", tc.reason, tries, err, tc.tries)
				}
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tired := errors.New("tired")
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		time.AfterFunc(time.Second, func() { stop(tired) })
		err := walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error { return play(ctx, "503/15") })
		if !errors.Is(err, tired) || !apierrors.IsServiceUnavailable(err) {
			t.Errorf("Retry returned %v, want the context's cause and the last error", err)
		}
	})
}

// TestRetryDoesNotMultiplyTheAttemptsOfAList: a caller that retries a whole scan
// must not begin again when the attempts for one page are used up.
func TestRetryDoesNotMultiplyTheAttemptsOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts = 3
		tries := 0
		err := walk.Retry(t.Context(), attempts, func(ctx context.Context) error {
			fetch := func(context.Context, int64, string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
				tries++
				return walk.Page[*metav1.PartialObjectMetadata]{}, "", apierrors.NewServiceUnavailable("away")
			}
			for _, err := range walk.List(ctx, fetch, walk.ListOptions{Attempts: attempts}) {
				return err
			}
			return nil
		})
		if !apierrors.IsServiceUnavailable(err) || tries != attempts {
			t.Errorf("%d attempts, error %v; want %d and the server's error", tries, err, attempts)
		}
	})
}
