package walk_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

var birds = schema.GroupResource{Group: "godwit.test", Resource: "birds"}

// bird is an object of a scripted collection.
type bird struct{ namespace, name string }

func (b *bird) GetNamespace() string { return b.namespace }
func (b *bird) GetName() string      { return b.name }

// script lists a server's answers to one object's requests. The last word is
// repeated for ever, and an empty script means ok.
//
//	ok       written, and the resourceVersion moved
//	same     written, and the server elided it
//	404 422 500 502 503 504 ...  that status, as client-go returns it
//	429/3    that status with Retry-After: 3
//	refused reset eof timeout    no answer, or half of one
//	3s       ok after three seconds, unless the context ends before
//	hang     nothing until the context ends
//
// Three words are for the action, not the server: skip makes it skip the object,
// mute fail without an error, nil return no outcome.
type script []string

// server plays a script for each object and counts the requests.
type server struct {
	mu       sync.Mutex
	scripts  map[string]script
	requests map[string]int
}

// collection parses pages such as "a: 429 500 ok | b | x/c: 404".
func collection(pages ...string) (*server, walk.Source[*bird]) {
	s := &server{scripts: map[string]script{}, requests: map[string]int{}}
	var parsed []walk.Page[*bird]
	for i, page := range pages {
		p := walk.Page[*bird]{ResourceVersion: strconv.Itoa(100 + i)}
		for object := range strings.SplitSeq(page, "|") {
			key, words, _ := strings.Cut(object, ":")
			if key = strings.TrimSpace(key); key == "" {
				continue
			}
			b := &bird{name: key}
			if ns, name, ok := strings.Cut(key, "/"); ok {
				b.namespace, b.name = ns, name
			}
			s.scripts[key] = strings.Fields(words)
			p.Items = append(p.Items, b)
		}
		parsed = append(parsed, p)
	}
	left := int64(0)
	for i := range slices.Backward(parsed) {
		parsed[i].Remaining = left
		left += int64(len(parsed[i].Items))
	}
	return s, func(yield func(walk.Page[*bird], error) bool) {
		for _, p := range parsed {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// then lets a source end in an error.
func then(source walk.Source[*bird], err error) walk.Source[*bird] {
	return func(yield func(walk.Page[*bird], error) bool) {
		for p, e := range source {
			if !yield(p, e) {
				return
			}
		}
		yield(walk.Page[*bird]{}, err)
	}
}

func (s *server) next(b *bird) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := walk.Key(b)
	words, n := s.scripts[key], s.requests[key]
	s.requests[key]++
	if len(words) == 0 {
		return "ok"
	}
	return words[min(n, len(words)-1)]
}

func (s *server) requested(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[key]
}

// rewrite defers an object after a conflict.
func (s *server) rewrite(ctx context.Context, b *bird) (godwit.Outcome, error) {
	word := s.next(b)
	switch word {
	case "skip":
		return godwit.Skipped, nil
	case "mute":
		return godwit.Failed, nil
	case "nil":
		return 0, nil
	case "same":
		return godwit.Unchanged, nil
	}
	err := play(ctx, word)
	switch {
	case err == nil:
		return godwit.Migrated, nil
	case apierrors.IsNotFound(err):
		return godwit.Gone, nil
	case apierrors.IsConflict(err):
		return godwit.Deferred, err
	}
	return godwit.Failed, fmt.Errorf("rewrite %s: %w", walk.Key(b), err)
}

// cleanup tries once more after a conflict, and finds the work done.
func (s *server) cleanup(ctx context.Context, b *bird) (godwit.Outcome, error) {
	outcome, err := s.rewrite(ctx, b)
	if !apierrors.IsConflict(err) {
		return outcome, err
	}
	if outcome, err = s.rewrite(ctx, b); outcome == godwit.Migrated {
		outcome = godwit.Unchanged
	}
	return outcome, err
}

// play gives one answer as the client sees it.
func play(ctx context.Context, word string) error {
	if d, err := time.ParseDuration(word); err == nil {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	switch word {
	case "ok":
		return nil
	case "hang":
		<-ctx.Done()
		return &url.Error{Op: "Patch", URL: "https://server", Err: context.Cause(ctx)}
	case "refused":
		return &url.Error{Op: "Patch", URL: "https://server", Err: &net.OpError{
			Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
		}}
	case "reset":
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case "eof":
		return fmt.Errorf("unexpected error when reading response body: %w", io.ErrUnexpectedEOF)
	case "timeout":
		return &url.Error{Op: "Get", URL: "https://server", Err: context.DeadlineExceeded}
	case "full":
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "etcdserver: mvcc: database space exceeded"}}
	case "garbled":
		return errors.New("couldn't get version/kind; json parse error: invalid character '<'")
	}
	code, after, _ := strings.Cut(word, "/")
	return status(code, after)
}

// status returns a StatusError as client-go makes it of an answer.
func status(code, retryAfter string) *apierrors.StatusError {
	c, err := strconv.Atoi(code)
	if err != nil {
		panic("no such word: " + code)
	}
	seconds, _ := strconv.Atoi(retryAfter)
	return apierrors.NewGenericServerResponse(c, http.MethodPatch, birds, "b", "said the script", seconds, true)
}

// expired returns a 410 as the API server sends it, with or without a token that
// continues at the newest resourceVersion.
func expired(token string) *apierrors.StatusError {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old")
	err.ErrStatus.ListMeta = metav1.ListMeta{Continue: token}
	return err
}

// prose renders a report in words, for the tables of tests.
func prose(r walk.Report) string {
	var parts []string
	for _, c := range []struct {
		n    int64
		what string
	}{
		{r.Counts.Migrated, "migrated"},
		{r.Counts.Unchanged, "unchanged"},
		{r.Counts.Skipped, "skipped"},
		{r.Counts.Gone, "gone"},
		{r.Counts.Deferred, "deferred"},
		{r.Counts.Failed, "failed"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	text := cmp.Or(strings.Join(parts, ", "), "nothing done")
	if r.Cursor != "" {
		text += "; cursor " + r.Cursor
	}
	if names := named(r); len(names) > 0 {
		text += "; named " + strings.Join(names, " ")
	}
	if r.Complete {
		return text + "; complete"
	}
	return text
}

func named(r walk.Report) []string {
	var names []string
	for _, f := range r.Failures {
		names = append(names, walk.Key(&bird{f.Namespace, f.Name}))
	}
	slices.Sort(names)
	return names
}
