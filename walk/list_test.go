package walk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

// lister serves a collection of three pages. Its script has one word per
// request; after the last word every request is fine.
//
//	ok       the page
//	410      the token is expired, and the answer has no other
//	410>     the token is expired, and the answer has one that continues the list
//
// and the faults that an object's script knows.
type lister struct {
	words   []string
	fetches int
	rv      int
}

func (l *lister) fetch(ctx context.Context, limit int64, token string) (walk.Page[*bird], string, error) {
	word := "ok"
	if l.fetches < len(l.words) {
		word = l.words[l.fetches]
	}
	l.fetches++
	page, rv := 1, l.rv
	if token != "" {
		page, rv = parseToken(token)
	}
	switch word {
	case "410":
		l.rv++
		return walk.Page[*bird]{}, "", expired("")
	case "410>":
		l.rv++
		return walk.Page[*bird]{}, "", expired(fmt.Sprint(page, "@", l.rv))
	case "ok":
		p := walk.Page[*bird]{
			Items:           []*bird{{name: strconv.Itoa(page)}},
			ResourceVersion: strconv.Itoa(rv),
			Remaining:       int64(3 - page),
		}
		if page == 3 {
			p.Remaining = -1 // a server leaves the field out, and so does its client
			return p, "", nil
		}
		return p, fmt.Sprint(page+1, "@", rv), nil
	}
	return walk.Page[*bird]{}, "", play(ctx, word)
}

func parseToken(token string) (page, rv int) {
	if _, err := fmt.Sscanf(token, "%d@%d", &page, &rv); err != nil {
		panic(err)
	}
	return page, rv
}

func TestList(t *testing.T) {
	gone := apierrors.IsResourceExpired
	none := func(err error) bool { return err == nil }
	cases := map[string]struct {
		reason string
		script string
		want   string // pages at resourceVersions
		err    func(error) bool
	}{
		"all is well": {
			reason: "one snapshot, page by page",
			script: "ok ok ok",
			want:   "1@100 2@100 3@100", err: none,
		},
		"expired, with a token": {
			reason: "the list continues at the same key, later pages are newer",
			script: "ok 410> ok ok",
			want:   "1@100 2@101 3@101", err: none,
		},
		"expired again and again, never often in a row": {
			reason: "a slow walk over a busy server sees this",
			script: "ok 410> 410> 410> ok 410> 410> 410> ok",
			want:   "1@100 2@103 3@106", err: none,
		},
		"expired without a token": {
			reason: "the list starts again",
			script: "ok ok 410 ok ok ok",
			want:   "1@100 2@100 1@101 2@101 3@101", err: none,
		},
		"tokens that expire at once": {
			reason: "more requests do not help",
			script: "ok 410> 410> 410> 410>",
			want:   "1@100", err: gone,
		},
		"a list that always starts again": {
			reason: "pages in between are no progress: it would never end",
			script: "ok 410 ok 410 ok 410 ok 410 ok 410 ok 410",
			want:   "1@100 1@101 1@102 1@103", err: gone,
		},
		"expired at the beginning": {
			reason: "the request had no token that can expire",
			script: "410",
			want:   "", err: gone,
		},
		"faults that pass": {
			reason: "a page is retried like an object",
			script: "500 ok 429/3 502 503 504 ok refused eof timeout ok",
			want:   "1@100 2@100 3@100", err: none,
		},
		"a fault that stays": {
			reason: "attempts are capped",
			script: "ok" + strings.Repeat(" 503", walk.DefaultAttempts),
			want:   "1@100", err: apierrors.IsServiceUnavailable,
		},
		"just enough attempts": {
			reason: "the last attempt counts",
			script: "ok" + strings.Repeat(" 503", walk.DefaultAttempts-1),
			want:   "1@100 2@100 3@100", err: none,
		},
		"a page that breaks off": {
			reason: "the connection broke, the page is intact",
			script: "ok eof eof ok",
			want:   "1@100 2@100 3@100", err: none,
		},
		"a page that cannot be decoded": {
			reason: "a retry returns the same page, and skipping it would lose objects",
			script: "ok garbled ok",
			want:   "1@100", err: func(err error) bool { return err != nil && !errors.Is(err, io.EOF) },
		},
		"forbidden": {
			reason: "a retry has the same permissions",
			script: "403",
			want:   "", err: apierrors.IsForbidden,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lister{words: strings.Fields(tc.script), rv: 100}
				var got []string
				var last error
				for page, err := range walk.List(t.Context(), l.fetch, walk.ListOptions{}) {
					if last = err; err != nil {
						continue // nothing may follow
					}
					got = append(got, page.Items[0].name+"@"+page.ResourceVersion)
					if n, _ := strconv.ParseInt(page.Items[0].name, 10, 64); page.Remaining != 3-n {
						t.Errorf("%s: %d remain after page %d", tc.reason, page.Remaining, n)
					}
				}
				if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
					t.Errorf("%s: pages (-want +got):\n%s", tc.reason, diff)
				}
				if !tc.err(last) {
					t.Errorf("%s: ended with %v", tc.reason, last)
				}
			})
		})
	}
}

func TestListProducerEndsWithItsConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The bubble fails the test if the producer is still there at its end.
		l := &lister{rv: 100}
		for range walk.List(t.Context(), l.fetch, walk.ListOptions{}) {
			break
		}
	})
}

func TestListReportsTheEndOfItsContext(t *testing.T) {
	tired := errors.New("tired")
	cases := map[string]struct{ reason, script string }{
		"between pages":   {"an end without an error would look like the whole collection", "ok ok ok"},
		"between retries": {"a wait ends with the context", "ok 503 503 503"},
		"in a request":    {"so does a request", "ok hang"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				l := &lister{words: strings.Fields(tc.script), rv: 100}
				var last error
				pages := 0
				for _, err := range walk.List(ctx, l.fetch, walk.ListOptions{}) {
					if pages++; pages == 1 {
						synctest.Wait() // the next page is under way or at hand
						stop(tired)
					}
					last = err
				}
				if !errors.Is(last, tired) || pages > 3 {
					t.Errorf("%s: %d pages, ended with %v", tc.reason, pages, last)
				}
			})
		})
	}
}

// endless serves numbered pages of size objects, n of them.
func endless(n, size int, fetched func(page int, first *bird)) walk.Fetch[*bird] {
	return func(_ context.Context, _ int64, token string) (walk.Page[*bird], string, error) {
		page, _ := strconv.Atoi(token)
		p := walk.Page[*bird]{Items: make([]*bird, size), Remaining: int64((n - page - 1) * size)}
		for i := range p.Items {
			p.Items[i] = &bird{name: fmt.Sprintf("%07d", page*size+i)}
		}
		fetched(page, p.Items[0])
		next := ""
		if page+1 < n {
			next = strconv.Itoa(page + 1)
		}
		return p, next, nil
	}
}

func TestListHoldsAtMostTwoPages(t *testing.T) {
	const pages, size = 20, 50
	synctest.Test(t, func(t *testing.T) {
		fetches, acted := 0, 0
		source := walk.List(t.Context(), endless(pages, size, func(int, *bird) { fetches++ }), walk.ListOptions{})
		s, _ := collection()
		_, err := walk.Run(t.Context(), source, s.rewrite, walk.Options{
			OnPage: func(context.Context, walk.Report) error {
				acted++
				synctest.Wait() // until the producer can do no more
				if want := min(acted+1, pages); fetches != want {
					t.Errorf("%d pages fetched while acting on page %d, want %d", fetches, acted, want)
				}
				return nil
			},
		})
		if err != nil || acted != pages {
			t.Errorf("%d pages, %v", acted, err)
		}
	})
}

func TestListFreesFormerPages(t *testing.T) {
	const pages, size = 20, 50
	first := make([]weak.Pointer[bird], pages)
	fetched := make(chan struct{}, pages)
	source := walk.List(t.Context(), endless(pages, size, func(page int, b *bird) {
		first[page] = weak.Make(b)
		fetched <- struct{}{}
	}), walk.ListOptions{})

	acted := 0
	act := func(_ context.Context, b *bird) (godwit.Outcome, error) {
		n, _ := strconv.Atoi(b.name)
		if n%size != 1 { // in the middle of a page, when its predecessor is done
			return godwit.Migrated, nil
		}
		<-fetched // this page
		if acted+1 < pages {
			fetched <- <-fetched // and the next
		}
		acted++
		runtime.GC()
		alive := 0
		for _, p := range first[:min(acted+1, pages)] {
			if p.Value() != nil {
				alive++
			}
		}
		if alive > 2 {
			t.Errorf("%d pages are alive while acting on page %d", alive, acted)
		}
		return godwit.Migrated, nil
	}
	_, err := walk.Run(t.Context(), source, act, walk.Options{Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 1})})
	if err != nil {
		t.Fatal(err)
	}
}

func TestListRequestsBoundedPages(t *testing.T) {
	for name, tc := range map[string]struct{ size, want int64 }{
		"by default": {0, walk.DefaultPageObjects},
		"as told":    {7, 7},
	} {
		t.Run(name, func(t *testing.T) {
			var got int64
			fetch := func(_ context.Context, limit int64, _ string) (walk.Page[*bird], string, error) {
				got = limit
				return walk.Page[*bird]{}, "", nil
			}
			for range walk.List(t.Context(), fetch, walk.ListOptions{PageObjects: tc.size}) {
			}
			if got != tc.want {
				t.Errorf("limit %d, want %d", got, tc.want)
			}
		})
	}
}

func TestListHonorsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lister{words: []string{"429/3"}, rv: 100}
		began := time.Now()
		for range walk.List(t.Context(), l.fetch, walk.ListOptions{}) {
		}
		if waited := time.Since(began); waited < 3*time.Second { // by the bubble's clock
			t.Errorf("asked again after %v", waited)
		}
	})
}
