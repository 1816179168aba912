package crdmigrator_test

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// watching makes the operator watch its objects for a controller of its own, as UseCache
// expects.
func (c *configured) watching() *configured {
	c.t.Helper()
	if _, err := c.manager.GetCache().GetInformer(c.t.Context(), &widget{}); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// cached returns the objects in the operator's cache, by name.
func (c *configured) cached() map[string]*widget {
	c.t.Helper()
	var list widgetList
	if err := c.manager.GetClient().List(c.t.Context(), &list); err != nil {
		c.t.Fatal(err)
	}
	byName := map[string]*widget{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName
}

func watches(requests []string) []string {
	return selected(requests, func(_, uri string) bool { return strings.Contains(uri, "watch=true") })
}

// passes are the first pages of passes over all objects.
func passes(requests []string) []string {
	return selected(requests, func(_, uri string) bool { return strings.Contains(uri+"&", "limit=50&") })
}

// TestUseCache_FalseStartsNoInformer: an informer keeps every object in memory.
func TestUseCache_FalseStartsNoInformer(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	c := w.embed(embedding{})
	c.start()
	c.awaitObserved()
	w.mustLeave("after the migration", cleaned(5))
	reads := w.readsIn(c.sent())
	if len(passes(reads)) == 0 {
		t.Errorf("reads %q, want a list in pages", reads)
	}
	for _, read := range reads {
		uri, err := url.Parse(strings.TrimPrefix(read, "GET "))
		if err != nil {
			t.Fatal(err)
		}
		// A list of one object has the number of all.
		if limit := uri.Query().Get("limit"); uri.Query().Has("watch") || limit != "50" && limit != "1" {
			t.Errorf("%q is no list in pages", read)
		}
	}
	if got := watches(c.sent()); len(got) != 1 || !strings.Contains(got[0], "/customresourcedefinitions?") {
		t.Errorf("watches = %q, want the one of CRDs", got)
	}
}

// TestUseCache_OffersCachedObjectsFirst: the migrator writes the objects of the
// operator's informer first, at the version of its Go type, and then lists all objects.
func TestUseCache_OffersCachedObjectsFirst(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	c := w.embed(embedding{by: byCache}).watching()
	c.start()
	c.awaitObserved()
	w.mustLeave("after the migration", cleaned(20))
	w.mustBeWrittenOnce()
	sent := c.sent()
	watched := watches(w.readsIn(sent))
	if len(watched) != 1 || !strings.HasPrefix(watched[0], "GET /apis/"+w.group+"/v1/widgets?") {
		t.Errorf("watches %q, want the operator's own, at v1", watched)
	}
	writes, lists := w.writesIn(sent), passes(w.readsIn(sent))
	if len(writes) != 20 || len(lists) != 1 || slices.Index(sent, writes[19]) > slices.Index(sent, lists[0]) {
		t.Errorf("sent %q, want 20 writes and then one list of all objects", sent)
	}
}

// sent returns all requests that the operator has sent.
func (c *configured) sent() []string {
	return c.requests.matching(func(string) bool { return true })
}

// lag delays the watch of the test's objects, so that the cache keeps old objects.
type lag struct {
	mu   sync.Mutex
	held chan struct{} // nil: nothing is delayed
}

func (l *lag) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = make(chan struct{})
}

func (l *lag) wire(w *widgets) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Has("watch") && strings.Contains(r.URL.Path, "/"+w.group+"/") {
				resp.Body = &lagging{ReadCloser: resp.Body, lag: l, closed: make(chan struct{})}
			}
			return resp, err
		})
	}
}

type lagging struct {
	io.ReadCloser
	lag    *lag
	once   sync.Once
	closed chan struct{}
}

func (b *lagging) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.lag.mu.Lock()
	held := b.lag.held
	b.lag.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-b.closed:
		}
	}
	return n, err
}

func (b *lagging) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// behind is an operator whose cache has n objects at v1, and no later change: neither
// objects that were created nor objects that were written while v1 was still the storage
// version.
func behind(t *testing.T, n int, policy decision.Policy) (*widgets, *configured) {
	t.Helper()
	w := newWidgets(t, shared)
	w.fill("v1", n)
	var l lag
	c := w.embed(embedding{by: byCache, policy: policy, wire: l.wire(w)}).watching()
	c.start()
	c.awaitObserved()
	if got := len(c.cached()); got != n {
		t.Fatalf("%d objects are cached, want %d", got, n)
	}
	l.begin()
	for _, name := range []string{"a-late", "z-late"} {
		w.create(w.config, "v1", name)
	}
	w.otherClient("v1").paints("w-0001", "red")
	return w, c
}

// TestUseCache_FindsWhatTheCacheMissed: some objects are newer than the cache and still
// at v1. With the cache's resourceVersion as C they would stay there, and storedVersions
// would be trimmed.
func TestUseCache_FindsWhatTheCacheMissed(t *testing.T) {
	t.Parallel()
	w, c := behind(t, 10, decision.Policy{Settle: -1})
	w.flip()
	c.awaitObserved()
	w.mustLeave("although the cache lags behind", cleaned(12))
	if got := c.cached(); got["a-late"] != nil || len(got) != 10 {
		t.Errorf("%d objects are cached, with a-late, want it to be missing", len(got))
	}
	for name, times := range map[string]int64{"a-late": 2, "z-late": 2, "w-0000": 2, "w-0001": 3} {
		if got := w.writes()[w.key(name)]; got != times {
			t.Errorf("%s was written %d times, want %d", name, got, times)
		}
	}
}

// TestUseCache_ConflictOverAStaleObjectProvesNothing: the apply has the resourceVersion
// of the cache, and the server has a newer object, which is at v1 as well. If the
// conflict counted as a migration by another client, w-0001 would stay at v1.
func TestUseCache_ConflictOverAStaleObjectProvesNothing(t *testing.T) {
	t.Parallel()
	w, c := behind(t, 10, decision.Policy{Settle: -1, Write: crdmigrator.WriteApply})
	w.flip()
	c.awaitObserved()
	w.mustLeave("although the cache lags behind", cleaned(12))
	tries := slices.DeleteFunc(w.writesIn(c.sent()), func(r string) bool { return !with("/w-0001?")(r) })
	if len(tries) != 2 {
		t.Errorf("tried %q, want one as the cache had it and one as it was listed", tries)
	}
}

// TestUseCache_CleansWhatATransformHides: the cached objects have no managedFields,
// but the stored ones have.
func TestUseCache_CleansWhatATransformHides(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.mustApply("painter", "v1", "applied")
	w.fill("v1", 2)
	w.flip()
	w.unserve()
	c := w.embed(embedding{version: "v2", by: byCache, manager: func(o *manager.Options) {
		o.Cache.DefaultTransform = cache.TransformStripManagedFields()
	}}).watching()
	c.start()
	c.awaitObserved()
	for name, o := range c.cached() {
		if o.ManagedFields != nil {
			t.Errorf("%s is cached with managedFields, want none", name)
		}
	}
	w.mustHaveEntries("after the cleanup", "applied", "painter Apply v2")
	w.mustHaveEntries("after the cleanup", "w-0001", "crdmigrator.test Update v2")
	w.mustLeave("after the cleanup", cleaned(3))
}

// TestUseCache_CleanupReadsLiveAfterAConflict: the cached object would conflict again.
func TestUseCache_CleanupReadsLiveAfterAConflict(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	w.unserve()
	other := w.otherClient("v2")
	var l lag
	var once sync.Once
	c := w.embed(embedding{version: "v2", by: byCache, wire: func(next http.RoundTripper) http.RoundTripper {
		return before(func(r *http.Request) {
			if patches(r, "w-0001") {
				once.Do(func() { l.begin(); other.paints("w-0001", "red") })
			}
		})(l.wire(w)(next))
	}}).watching()
	c.start()
	c.awaitObserved()
	w.mustHaveEntries("in the end", "w-0001", "other-client Update v2")
	w.mustLeave("in the end", cleaned(3))
	if lists := passes(w.readsIn(c.sent())); len(lists) != 1 {
		t.Errorf("listed %q, want one pass to clean all", lists)
	}
	if got := c.cached()["w-0001"].ManagedFields; len(got) != 1 || got[0].APIVersion != w.group+"/v1" {
		t.Errorf("cached entries = %v, want the one of v1", got)
	}
}
