package walk

import (
	"context"
	"errors"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DefaultPageObjects bounds the memory of one list call; 500 is kubectl's default of --chunk-size, and API servers are
// tuned for it.
const DefaultPageObjects = 500

// Page is one bounded part of a collection.
type Page[T any] struct {
	// Items are in key order. An item that waits for another attempt outlives its
	// page. An item that points into an array of the whole page keeps the page in
	// memory.
	Items []T
	// ResourceVersion is the resourceVersion of the collection in this page. The pages of one list share it, unless the
	// continue token expired between them.
	ResourceVersion string
	// Remaining counts the objects after this page; -1 when the server does
	// not report it. The server leaves it out on the last page; List sets 0 there.
	Remaining int64
	// Bytes is about the size of the page in memory or on the wire; 0 when it is not known. With
	// [ListOptions].PageBytes, the next page follows it.
	Bytes int64
}

// Source yields pages in key order. After an error it ends; the page with the error is invalid.
type Source[T any] = iter.Seq2[Page[T], error]

// Fetch reads one page: at most limit objects from the continue token on; an empty token means the beginning. It
// returns the token of the next page, or empty after the last page.
type Fetch[T any] func(ctx context.Context, limit int64, token string) (page Page[T], next string, err error)

// ListOptions tune [List]. The zero value works.
type ListOptions struct {
	// PageObjects is the size of a page; 0 means DefaultPageObjects.
	PageObjects int64
	// PageBytes bounds the memory where objects are large: the first page has few objects, and each next one as many as fit
	// into PageBytes by the size of the page before. 0 means that each page has PageObjects.
	PageBytes int64
	// Attempts bounds the attempts for one page; 0 means DefaultAttempts.
	Attempts int
	// Retry decides whether a failed list call is retried; nil means [Transient].
	Retry func(error) (time.Duration, bool)
}

// List reads a collection with fetch. It fetches one page ahead, and keeps at most two pages in memory.
//
// If the list's snapshot was compacted (410), List continues from the same key with the token in the error. Objects on
// later pages may then be newer than the first page's resourceVersion. If the error has no token, List starts again
// from the beginning, at most 3 times. So the action must tolerate an object twice, and such an object is counted
// twice.
//
// A source that ends without an error has yielded the whole collection. When its
// context ends, the source yields the cause as an error.
func List[T any](ctx context.Context, fetch Fetch[T], o ListOptions) Source[T] {
	l := lister[T]{fetch: fetch, options: o.withDefaults()}
	return func(yield func(Page[T], error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()

		ahead := make(chan fetched[T])
		go func() {
			defer close(ahead)
			l.produce(ctx, ahead)
		}()
		// The producer must end before the source returns: otherwise its next fetch could outlive the owner of the
		// client. Draining the channel here lets the producer send without watching ctx.
		defer func() {
			cancel()
			for range ahead {
			}
		}()
		for f := range ahead {
			if !yield(f.page, f.err) || f.err != nil {
				return
			}
		}
	}
}

type fetched[T any] struct {
	page Page[T]
	err  error
}

type lister[T any] struct {
	fetch   Fetch[T]
	options ListOptions
}

func (o ListOptions) withDefaults() ListOptions {
	if o.PageObjects <= 0 {
		o.PageObjects = DefaultPageObjects
	}
	if o.Attempts <= 0 {
		o.Attempts = DefaultAttempts
	}
	if o.Retry == nil {
		o.Retry = Transient
	}
	return o
}

const (
	// DefaultPageBytes keeps two pages, which are in memory several times while they are decoded, below 100 MiB.
	DefaultPageBytes = 8 << 20

	// firstPageObjects are 70 MB at most, if each has the 1.4 MB that etcd accepts.
	firstPageObjects = 50

	// pageGrowth bounds how much larger a page is than the one before, whose objects may have been small by chance.
	pageGrowth = 4
)

// firstLimit is the number of objects to ask for in the first page.
func (o ListOptions) firstLimit() int64 {
	if o.PageBytes <= 0 {
		return o.PageObjects
	}
	return min(o.PageObjects, firstPageObjects)
}

// nextLimit is the number of objects to ask for after a page.
func (o ListOptions) nextLimit(limit int64, items int, bytes int64) int64 {
	if o.PageBytes <= 0 || items == 0 {
		return limit
	}
	next := min(o.PageObjects, pageGrowth*limit)
	if bytes > 0 {
		next = min(next, o.PageBytes*int64(items)/bytes)
	}
	return max(1, next)
}

const (
	// maxExpired bounds the consecutive expired tokens. More requests do not help if a server expires every token at
	// once.
	maxExpired = 3

	// maxRestarts bounds the restarts of a whole list, regardless of the pages in between: a list that always expires
	// before its end would never end.
	maxRestarts = 3
)

func (l lister[T]) produce(ctx context.Context, out chan<- fetched[T]) {
	token, expiries, restarts := "", 0, 0
	limit := l.options.firstLimit()
	for {
		page, next, err := l.page(ctx, limit, token)
		if resume, ok := expired(err); ok && token != "" {
			expiries++
			if resume == "" {
				restarts++
			}
			if expiries <= maxExpired && restarts <= maxRestarts {
				token = resume
				continue
			}
		}
		if next == "" {
			page.Remaining = 0
		}
		out <- fetched[T]{page, err}
		if err != nil || next == "" {
			return
		}
		token, expiries = next, 0
		limit = l.options.nextLimit(limit, len(page.Items), page.Bytes)
	}
}

// page fetches one page. It retries transient errors until the attempts are used up.
func (l lister[T]) page(ctx context.Context, limit int64, token string) (Page[T], string, error) {
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return Page[T]{}, "", context.Cause(ctx)
		}
		page, next, err := l.fetch(ctx, limit, token)
		if err == nil {
			return page, next, nil
		}
		hint, again := l.options.Retry(err)
		if !again || ctx.Err() != nil {
			return Page[T]{}, "", err
		}
		if attempt == l.options.Attempts {
			return Page[T]{}, "", &exhaustedError{attempts: attempt, err: err}
		}
		if err := Wait(ctx, backoff(attempt, hint)); err != nil {
			return Page[T]{}, "", err
		}
	}
}

// expired reports whether an error is a 410, and returns the continue token in it: it continues from the same key at
// the newest resourceVersion. If the error has no token, resume is empty, which starts the list again.
func expired(err error) (resume string, ok bool) {
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return "", false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		resume = status.Status().Continue
	}
	return resume, true
}
