package crdmigrator_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestWatch_ReadsMetadataOfCRDsOnly: schemas may have hundreds of kilobytes, and an
// informer keeps every CRD of the cluster.
func TestWatch_ReadsMetadataOfCRDsOnly(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	var mu sync.Mutex
	var accepts []string
	c := w.embed(embedding{wire: before(func(r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions") {
			mu.Lock()
			defer mu.Unlock()
			accepts = append(accepts, r.Header.Get("Accept"))
		}
	})})
	c.start()
	c.awaitObserved()
	mu.Lock()
	defer mu.Unlock()
	if len(accepts) == 0 || len(watches(c.sent())) != 1 {
		t.Errorf("%d lists and watches of CRDs, among them the watches %q, want one watch", len(accepts), watches(c.sent()))
	}
	for _, accept := range accepts {
		if !strings.Contains(accept, ";as=PartialObjectMetadata") {
			t.Errorf("Accept of CRDs = %q, want metadata", accept)
		}
	}
}

// reads counts how often the reconciler read a CRD. A reconciliation begins with a GET of
// the whole CRD; others follow if it continues.
func (c *configured) reads(crd string) int {
	return len(c.requests.matching(func(r string) bool {
		return r == "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+crd
	}))
}

// events counts the updates of a CRD that the operator's informer brings.
// An operator's controllers get the same ones, at the same time.
func (c *configured) events(changed bool) *atomic.Int64 {
	c.t.Helper()
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	informer, err := c.manager.GetCache().GetInformer(c.t.Context(), crd)
	if err != nil {
		c.t.Fatal(err)
	}
	name := c.w.name
	var n atomic.Int64
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		b, a := before.(metav1.Object), after.(metav1.Object)
		if a.GetName() == name && (b.GetResourceVersion() != a.GetResourceVersion()) == changed {
			n.Add(1)
		}
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	return &n
}

// bell is a second CRD, which Config does not name. One worker handles events in their
// order, so that a read of this CRD shows that all earlier events are handled.
type bell struct {
	w     *widgets
	rings int
}

func newBell(w *widgets) *bell {
	w.t.Helper()
	b := &bell{w: &widgets{t: w.t, plane: w.plane, group: w.group, plural: "bells", kind: "Bell"}}
	b.w.install()
	return b
}

func (b *bell) ring(c *configured) {
	b.w.t.Helper()
	b.rings++
	before := c.reads(b.w.name)
	b.w.label("rings", strings.Repeat("i", b.rings))
	await(c.t, "a read of the CRD that was changed last", func() bool { return c.reads(b.w.name) > before })
}

// TestWatch_ResyncStartsNoReconcile: an informer's resync brings unchanged CRDs.
func TestWatch_ResyncStartsNoReconcile(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	last := newBell(w)
	c := w.embed(embedding{manager: func(o *manager.Options) { o.Cache.SyncPeriod = new(time.Second) }})
	resyncs := c.events(false)
	c.start()
	c.awaitObserved()
	last.ring(c)
	before, seen := c.reads(w.name), resyncs.Load()
	await(c.t, "resyncs", func() bool { return resyncs.Load() >= seen+3 })
	last.ring(c)
	if after := c.reads(w.name); after != before {
		t.Errorf("%d reads of the CRD, want none", after-before)
	}
}

// TestWatch_OwnCheckpointStartsNoReconcile: a pass that met a conflict saves its
// checkpoint and is requeued. The event of its own checkpoint must not start it at once.
func TestWatch_OwnCheckpointStartsNoReconcile(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	last := newBell(w)
	other := w.otherClient("v2")
	c := w.embed(embedding{
		policy: decision.Policy{Settle: -1, Write: crdmigrator.WriteUpdate},
		wire: before(func(r *http.Request) {
			if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/w-0001") {
				other.paints("w-0001", "red")
			}
		}),
	})
	saved := c.events(true)
	c.start()
	await(c.t, "the pass", func() bool { return w.stored()["v2"] == 3 })
	await(c.t, "its checkpoint", func() bool { return saved.Load() > 0 })
	last.ring(c)
	if writes := w.writesIn(c.sent()); len(writes) != 3 {
		t.Errorf("wrote %q, want one pass over 3 objects", writes)
	}
	if lists := passes(w.readsIn(c.sent())); len(lists) != 1 {
		t.Errorf("listed %q, want one pass", lists)
	}
	w.mustLeave("a pass that met another writer", outcome{Stored: map[string]int{"v2": 3}, StoredVersions: "v1,v2"})
}

// TestConfig_FindsItsCRDByGroupAndKind: the plural comes from the CRD, and a kind of the
// same name in another group is another kind.
func TestConfig_FindsItsCRDByGroupAndKind(t *testing.T) {
	t.Parallel()
	geese := &widgets{t: t, plane: shared, group: groupOf(t), plural: "geese", kind: "Goose"}
	geese.install()
	wild := &widgets{t: t, plane: shared, group: "wild-" + geese.group, plural: "geese", kind: "Goose"}
	wild.install()
	for _, w := range []*widgets{geese, wild} {
		w.fill("v1", 3)
		w.flip()
	}
	c := geese.embed(embedding{})
	c.start()
	c.awaitObserved()
	geese.mustLeave("an irregular plural", cleaned(3))

	c.w = wild
	c.mustReconcile() // as if its event had come through
	wild.mustHaveBeenWritten("the same kind in another group", 3, 1)
	wild.mustLeave("the same kind in another group", outcome{Stored: map[string]int{"v1": 3}, StoredVersions: "v1,v2"})
	if n := c.reads(wild.name); n != 1 {
		t.Errorf("%d reads of a CRD of another group, want only the test's own", n)
	}
}

// TestWaiting_DoesNotBlockAnotherCRD: the operator's only worker handles the next CRD while
// the servers settle.
func TestWaiting_DoesNotBlockAnotherCRD(t *testing.T) {
	t.Parallel()
	const settle = 15 * time.Second // longer than the first reconciliation takes on a busy machine
	w := newWidgets(t, shared)
	gadgets := &widgets{t: t, plane: shared, group: w.group, plural: "gadgets", kind: "Gadget"}
	gadgets.install()
	w.fill("v1", 3)
	w.flip()
	gadget := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: w.group + "/v1", Kind: "Gadget"}}
	var wrote atomic.Int64 // time of the first write, in nanoseconds
	c := w.embed(embedding{
		kinds:  map[client.Object]crdmigrator.ByObjectConfig{gadget: {}},
		policy: decision.Policy{Settle: settle},
		wire: before(func(r *http.Request) {
			if r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/apis/"+w.group+"/") && !r.URL.Query().Has("dryRun") {
				wrote.CompareAndSwap(0, time.Now().UnixNano())
			}
		}),
	})

	began := time.Now()
	result, err := c.reconcile()
	mustWait(t, result, err, settle+time.Second)
	c.w = gadgets
	c.mustReconcile()
	gadgets.mustLeave("while the other waits", outcome{Stored: map[string]int{}, StoredVersions: "v1", Observed: true})
	w.mustLeave("before the servers have settled", outcome{Stored: map[string]int{"v1": 3}, StoredVersions: "v1,v2"})

	c.w = w
	c.start()
	c.awaitObserved()
	w.mustLeave("in the end", cleaned(3))
	// The server's clock is read from a header that is cut to the second.
	if waited := time.Unix(0, wrote.Load()).Sub(began); waited < settle-time.Second {
		t.Errorf("the first object was written after %v, want at least %v", waited, settle)
	}
}

// TestWaiting_UsesRequeueAfter: a reconciliation ends while the servers settle.
func TestWaiting_UsesRequeueAfter(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	c := w.embed(embedding{policy: decision.Policy{Settle: time.Hour}})
	result, err := c.reconcile()
	mustWait(t, result, err, time.Minute) // not an hour: a lease may become stale meanwhile
	w.mustLeave("before the servers have settled", outcome{Stored: map[string]int{"v1": 3}, StoredVersions: "v1,v2"})
}

// TestWaiting_ForAnotherMigrator: the migrator waits for a StorageVersionMigration of the
// resource, without an error.
func TestWaiting_ForAnotherMigrator(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	api, err := dynamic.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	migrations := api.Resource(schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"})
	migration := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
		"metadata": map[string]any{"name": "of." + w.group},
		"spec":     map[string]any{"resource": map[string]any{"group": w.group, "resource": w.plural}},
	}}
	if _, err := migrations.Create(t.Context(), migration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := w.embed(embedding{})
	sent := c.during(func() {
		result, err := c.reconcile()
		mustWait(t, result, err, time.Minute)
	})
	if writes := w.writesIn(sent); len(writes) > 0 {
		t.Errorf("writes = %q, want none while another migrator runs", writes)
	}
	w.mustLeave("while another migrator runs", outcome{Stored: map[string]int{"v1": 3}, StoredVersions: "v1,v2"})

	if err := migrations.Delete(t.Context(), "of."+w.group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.mustReconcile()
	w.mustLeave("once it is gone", cleaned(3))
}
