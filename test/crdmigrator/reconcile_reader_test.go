package crdmigrator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
)

// live makes a reader without a cache.
func (o *operator) live() client.Client {
	o.t.Helper()
	c, err := client.New(o.manager.GetConfig(), client.Options{Scheme: o.manager.GetScheme()})
	if err != nil {
		o.t.Fatal(err)
	}
	return c
}

// colored shows only the objects with a label, as a reader of one shard does.
type colored struct{ client.Client }

func (c colored) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.Client.List(ctx, list, append(opts, client.MatchingLabels{"color": "blue"})...)
}

// ofDefault shows only the objects of namespace default.
func ofDefault(o *operator) client.Client {
	return client.NewNamespacedClient(o.live(), metav1.NamespaceDefault)
}

// inTwoNamespaces has objects at v1 in namespace default and in another one, and
// those in default have a label.
func inTwoNamespaces(t *testing.T) *widgets {
	t.Helper()
	w := newWidgets(t, shared)
	for i := range 5 {
		o := w.object("v1", fmt.Sprintf("w-%04d", i))
		o.SetLabels(map[string]string{"color": "blue"})
		if _, err := w.at("v1").Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.namespace("other", 5)
	return w
}

// TestIncompleteReaderDoesNotTrim: the objects that the reader does not show are at v1,
// and stay there.
func TestIncompleteReaderDoesNotTrim(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		reader func(*operator) client.Client
		page   int64
		stored map[string]int
	}{
		"one namespace": {
			reason: "the first page shows it, before the first write",
			reader: ofDefault, stored: map[string]int{"v1": 10},
		},
		"a label": {
			reason: "the API server does not count objects with a label, so the last page shows it",
			reader: func(o *operator) client.Client { return colored{o.live()} },
			page:   2, stored: map[string]int{"v1": 5, "v2": 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inTwoNamespaces(t)
			w.flip()
			said := &recorder{}
			c := w.embed(embedding{operator: func(o *operator) {
				o.migrator.APIReader, o.migrator.PageSize, o.migrator.Recorder = test.reader(o), test.page, said
			}})
			for range 2 { // the second pass has the writes of the first
				_, err := c.mustFail()
				if !errors.As(err, new(*listing.IncompleteError)) {
					t.Errorf("%s: the error is %v, want %s", test.reason, err, listing.ReasonIncompleteList)
				}
			}
			w.mustLeave(test.reason, outcome{Stored: test.stored, StoredVersions: "v1,v2"})
			warnings := said.warnings()
			if len(warnings) != 2 || !strings.Contains(warnings[0].note, listing.ReasonIncompleteList.Name) || !strings.Contains(warnings[0].note, "mgr.GetAPIReader()") {
				t.Errorf("%s: events %+v, want two that name %s and the remedy", test.reason, warnings, listing.ReasonIncompleteList)
			}

			// A run with a complete reader resumes, and no key that the incomplete
			// reader did not show counts as done.
			if report := w.mustMigrate(newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})); !report.Trimmed {
				t.Errorf("%s: the run that sees all objects: %+v", test.reason, report)
			}
			w.mustBeStored(test.reason, map[string]int{"v2": 10})
		})
	}
}

// dropping shows the first page as the API server lists it, and drops the objects of
// namespace other from later pages, as a reader of one tenant may. Its later pages have a
// later resourceVersion, as after an expired continue token.
type dropping struct {
	client.Client
	pages int // before it fails; 0: it lists all
	asked int
}

func (d *dropping) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if d.asked++; d.pages > 0 && d.asked > d.pages {
		return context.Canceled
	}
	if err := d.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	if asked := (&client.ListOptions{}).ApplyOptions(opts); asked.Continue == "" {
		return nil
	}
	version, err := strconv.Atoi(list.GetResourceVersion())
	if err != nil {
		return err
	}
	list.SetResourceVersion(strconv.Itoa(version + 1))
	all, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok {
		return fmt.Errorf("the list is a %T", list)
	}
	all.Items = slices.DeleteFunc(all.Items, func(o metav1.PartialObjectMetadata) bool { return strings.HasSuffix(o.Namespace, "-other") })
	return nil
}

// TestContinuedListOfAReaderThatDropsObjects: the first page reports as many objects as
// the API server counts, and the later pages can't be compared with a number.
func TestContinuedListOfAReaderThatDropsObjects(t *testing.T) {
	t.Parallel()
	w := inTwoNamespaces(t)
	w.flip()
	c := w.embed(embedding{operator: func(o *operator) {
		o.migrator.APIReader, o.migrator.PageSize = &dropping{Client: o.live()}, 2
	}})
	if _, err := c.mustFail(); !errors.As(err, new(*listing.IncompleteError)) {
		t.Errorf("the error is %v, want %s", err, listing.ReasonIncompleteList)
	}
	w.mustHaveStoredVersions("after a pass that missed objects", "v1,v2")
}

// TestCursorOfAReaderThatDropsObjectsIsNotTrusted: a pass with an incomplete list stops,
// and the next one, with a complete list, skips no object that the first did not see.
func TestCursorOfAReaderThatDropsObjectsIsNotTrusted(t *testing.T) {
	t.Parallel()
	w := inTwoNamespaces(t)
	w.namespace("zebra", 5) // after those that are dropped, in the order of a list
	w.flip()
	c := w.embed(embedding{operator: func(o *operator) {
		o.migrator.APIReader, o.migrator.PageSize = &dropping{Client: o.live(), pages: 6}, 2
	}})
	_, _ = c.mustFail()
	if stored := w.stored(); stored["v2"] < 6 || stored["v1"] < 5 {
		t.Fatalf("etcd holds %v: the first pass did not end between namespace other and the end", stored)
	}
	if report := w.mustMigrate(newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})); !report.Trimmed {
		t.Errorf("the run that sees all objects: %+v", report)
	}
	w.mustBeStored("after the run that sees all objects", map[string]int{"v2": 15})
}

// TestCacheAsReaderDoesNotTrim: a cache may be filtered, and it may be behind.
func TestCacheAsReaderDoesNotTrim(t *testing.T) {
	t.Parallel()
	for name, filtered := range map[string]bool{"of one namespace": true, "of all namespaces": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inTwoNamespaces(t)
			w.flip()
			said := &recorder{}
			c := w.embed(embedding{
				manager: func(o *manager.Options) {
					if filtered {
						o.Cache.ByObject = map[client.Object]cache.ByObject{&widget{}: {Namespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}}}
					}
				},
				operator: func(o *operator) { o.migrator.APIReader, o.migrator.Recorder = o.manager.GetCache(), said },
			})
			c.start()
			await(t, "a warning", func() bool { return len(said.warnings()) > 0 })
			if note := said.warnings()[0].note; !strings.Contains(note, listing.ReasonIncompleteList.Name) {
				t.Errorf("the event is %q, want %s", note, listing.ReasonIncompleteList.Name)
			}
			w.mustLeave("with a cache as the reader", outcome{Stored: map[string]int{"v1": 10}, StoredVersions: "v1,v2"})
		})
	}
}

// TestIncompleteReaderDoesNotMark: the pass has not read the managedFields of the objects
// that the reader does not show.
func TestIncompleteReaderDoesNotMark(t *testing.T) {
	t.Parallel()
	w := inTwoNamespaces(t)
	c := w.embed(embedding{operator: func(o *operator) { o.migrator.APIReader = ofDefault(o) }})
	if _, err := c.mustFail(); !errors.As(err, new(*listing.IncompleteError)) {
		t.Errorf("the error is %v, want %s", err, listing.ReasonIncompleteList)
	}
	w.mustLeave("where storedVersions is clean", outcome{Stored: map[string]int{"v1": 10}, StoredVersions: "v1"})
}

// exactly reports whether a request is for the objects at one resourceVersion.
func exactly(r *http.Request) bool {
	return r.URL.Query().Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact)
}

// compacted is an API server that answers 410 for any resourceVersion.
func compacted(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if !exactly(r) {
			return next.RoundTrip(r)
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"the provided resource version is too old"}`
		return &http.Response{
			StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	})
}

// TestCountsThatCannotBeCompared: the migrator lists the objects again from the API
// server.
func TestCountsThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	t.Run("an incomplete reader", func(t *testing.T) {
		t.Parallel()
		w := inTwoNamespaces(t)
		w.flip()
		c := w.embed(embedding{wire: compacted, operator: func(o *operator) { o.migrator.APIReader = ofDefault(o) }})
		if _, err := c.mustFail(); !errors.As(err, new(*listing.IncompleteError)) {
			t.Errorf("the error is %v, want %s", err, listing.ReasonIncompleteList)
		}
		w.mustLeave("after a pass that missed objects", outcome{Stored: map[string]int{"v2": 10}, StoredVersions: "v1,v2"})
	})
	t.Run("a complete reader", func(t *testing.T) {
		t.Parallel()
		w := inTwoNamespaces(t)
		w.flip()
		c := w.embed(embedding{wire: compacted})
		c.mustReconcile()
		w.mustLeave("after a pass that missed nothing", cleaned(10))
		w.mustBeWrittenOnce()
	})
}

// TestConcurrentWritesAreNoIncompleteList: other clients create and delete objects
// between any two requests of a pass.
func TestConcurrentWritesAreNoIncompleteList(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 12)
	w.flip()
	theirs := w.otherClient("v2")
	var lists atomic.Int64
	c := w.embed(embedding{
		wire: before(func(r *http.Request) {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/"+w.plural) {
				return
			}
			n := lists.Add(1)
			w.create(w.config, "v2", fmt.Sprintf("new-%d", n))
			if n <= 6 {
				theirs.deletes(fmt.Sprintf("w-%04d", n))
			}
			if exactly(r) { // more are deleted than the list has shown so far
				theirs.deletes("w-0008")
				theirs.deletes("w-0009")
				theirs.deletes("w-0010")
			}
		}),
		operator: func(o *operator) { o.migrator.PageSize = 2 },
	})
	c.mustReconcile()
	if got := w.storedVersions(); got != "v2" {
		t.Errorf("storedVersions is [%s] after a pass with writers, want [v2]", got)
	}
	if stored := w.stored(); stored["v1"] != 0 {
		t.Errorf("etcd holds %v, want nothing at v1", stored)
	}
}

// TestLostPageDoesNotTrim: a proxy in front of the API server drops objects from a list.
func TestLostPageDoesNotTrim(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 7)
	w.flip()
	config, _ := tap(w.config)
	config.Wrap(before(func(r *http.Request) {
		if q := r.URL.Query(); q.Has("continue") {
			q.Set("fieldSelector", "metadata.name=none")
			r.URL.RawQuery = q.Encode()
		}
	}))
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 3})
	report, err := w.migrate(t.Context(), m, nil)
	var incomplete *listing.IncompleteError
	if !errors.As(err, &incomplete) || incomplete.Listed != 3 || incomplete.Counted != 7 {
		t.Errorf("run: %v, want %s with 3 of 7 objects", err, listing.ReasonIncompleteList)
	}
	if want := (godwit.Counts{Migrated: 3}); report.Storage.Counts != want || report.Trimmed {
		t.Errorf("report: %+v, want %+v and no trim", report, want)
	}
	w.mustHaveStoredVersions("with a page lost", "v1,v2")

	w.mustBeMigrated(w.mustMigrate(newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})), 7)
}
