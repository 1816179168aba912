package crdmigrator_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// widget is an operator's Go type for the kind of a test.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (o *widget) DeepCopyObject() runtime.Object {
	c := &widget{TypeMeta: o.TypeMeta}
	o.DeepCopyInto(&c.ObjectMeta)
	return c
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	c := &widgetList{TypeMeta: l.TypeMeta, Items: make([]widget, len(l.Items))}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*widget)
	}
	return c
}

// configured is an operator that has a Go type for the CRD's kind and
// embeds the migrator by Config.
type configured struct{ *operator }

// embedding is how an operator embeds the migrator. The zero value is the
// simplest one.
type embedding struct {
	version  string // of the Go type; empty means v1
	by       crdmigrator.ByObjectConfig
	skip     []crdmigrator.Phase
	policy   decision.Policy                              // zero means quickSettle
	kinds    map[client.Object]crdmigrator.ByObjectConfig // further kinds
	manager  func(*manager.Options)
	operator func(*operator)
	wire     transport.WrapperFunc // lies between the operator and its API server
}

// embed makes an operator that has not started. Its user has all permissions except
// reading the API servers' leases, so that only the settle time decides when it
// begins.
func (w *widgets) embed(e embedding) *configured {
	w.t.Helper()
	_, user := w.user(
		permission{"*", w.group, "*"}, permission{"*", crdsGroup, "*"}, permission{"*", "storagemigration.k8s.io", "*"},
	)
	configure := func(o *operator) {
		o.migrator.Config = map[client.Object]crdmigrator.ByObjectConfig{&widget{}: e.by}
		maps.Copy(o.migrator.Config, e.kinds)
		o.migrator.SkipCRDMigrationPhases = e.skip
		if e.policy.Settle != 0 {
			o.migrator.Settle, o.migrator.Write = e.policy.Settle, e.policy.Write
		}
		if e.operator != nil {
			e.operator(o)
		}
	}
	manage := func(cfg *rest.Config, o *manager.Options) {
		*cfg = *rest.CopyConfig(user)
		if e.wire != nil {
			cfg.Wrap(e.wire)
		}
		w.addToScheme(o.Scheme, e.version)
		if e.manager != nil {
			e.manager(o)
		}
	}
	return &configured{newOperator(w, configure, manage)}
}

func (w *widgets) addToScheme(scheme *runtime.Scheme, version string) {
	if version == "" {
		version = "v1"
	}
	gv := schema.GroupVersion{Group: w.group, Version: version}
	scheme.AddKnownTypeWithName(gv.WithKind(w.kind), &widget{})
	scheme.AddKnownTypeWithName(gv.WithKind(w.kind+"List"), &widgetList{})
	metav1.AddToGroupVersion(scheme, gv)
}

// before calls a function right before each request is sent.
func before(happens func(*http.Request)) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			happens(r)
			return next.RoundTrip(r)
		})
	}
}

// patches reports whether a request is a patch of an object.
func patches(r *http.Request, name string) bool {
	return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/"+name)
}

// reconcile is what the controller does at an event about the CRD.
func (c *configured) reconcile() (reconcile.Result, error) {
	return c.migrator.Reconcile(c.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: c.w.name}})
}

// mustReconcile reconciles to the end, and returns the requests that were sent.
func (c *configured) mustReconcile() (sent []string) {
	c.t.Helper()
	return c.during(func() {
		if result, err := c.reconcile(); err != nil || result != (reconcile.Result{}) {
			c.t.Fatalf("reconcile: %+v, %v, want the end", result, err)
		}
	})
}

// mustFail reconciles, wants an error, and returns the requests that were sent.
func (c *configured) mustFail() (sent []string, err error) {
	c.t.Helper()
	sent = c.during(func() { _, err = c.reconcile() })
	if err == nil {
		c.t.Error("reconcile reports success, want an error, so that the controller tries again")
	}
	return sent, err
}

// during returns the requests that f sends, without those for discovery, which a
// client sends for each new kind.
func (c *configured) during(f func()) []string {
	const versionPath = "GET /apis/group/version"
	resources := func(request string) bool { return strings.Count(request, "/") > strings.Count(versionPath, "/") }
	n := len(c.requests.matching(resources))
	f()
	return c.requests.matching(resources)[n:]
}

// writesIn returns the writes of the test's objects among some requests.
func (w *widgets) writesIn(requests []string) []string {
	return selected(requests, func(method, uri string) bool {
		return method != http.MethodGet && strings.HasPrefix(uri, "/apis/"+w.group+"/")
	})
}

// readsIn returns the lists, watches and gets of the test's objects among some
// requests.
func (w *widgets) readsIn(requests []string) []string {
	return selected(requests, func(method, uri string) bool {
		return method == http.MethodGet && strings.HasPrefix(uri, "/apis/"+w.group+"/") && strings.Contains(uri, "/"+w.plural)
	})
}

func selected(requests []string, keep func(method, uri string) bool) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(request string) bool {
		method, uri, _ := strings.Cut(request, " ")
		return !keep(method, uri)
	})
}

func with(part string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, part) }
}

// outcome is the visible state after a reconciliation.
type outcome struct {
	Stored         map[string]int // objects in etcd by version
	StoredVersions string
	Observed       bool // the annotation carries the CRD's generation
}

func (w *widgets) mustLeave(reason string, want outcome) {
	w.t.Helper()
	crd := w.crd()
	got := outcome{Stored: w.stored(), StoredVersions: strings.Join(crd.Status.StoredVersions, ",")}
	mark, marked := crd.Annotations[crdmigrator.ClusterAPIObservedGenerationAnnotation]
	got.Observed = mark == strconv.FormatInt(crd.Generation, 10)
	if marked && !got.Observed {
		w.t.Logf("the annotation is of generation %s, the CRD of %d", mark, crd.Generation)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}

// awaitObserved waits for the annotation of the CRD as it is now.
func (c *configured) awaitObserved() {
	c.t.Helper()
	c.awaitAnnotation(crdmigrator.ClusterAPIObservedGenerationAnnotation, strconv.FormatInt(c.w.crd().Generation, 10))
}

// unserve stops serving v1, so that managedFields which name it are stale.
func (w *widgets) unserve() {
	w.t.Helper()
	w.setVersions(version("v1", false, false), version("v2", true, true))
}

// mustApply makes an object by server-side apply. It waits for the version to be served, which begins some moments after
// the CRD has it.
func (w *widgets) mustApply(manager, version, name string) {
	w.t.Helper()
	var err error
	await(w.t, version+" to be served", func() bool {
		_, err = w.apply(manager, version, name, "red")
		return !apierrors.IsNotFound(err)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// mustHaveEntries checks managedFields, one "manager operation version" each.
func (w *widgets) mustHaveEntries(reason, name string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.entries(name)); diff != "" {
		w.t.Errorf("%s: managedFields of %s (-want +got):\n%s", reason, name, diff)
	}
}

// otherClient writes objects while the operator runs, and in its goroutines, which
// must not end the test.
type otherClient struct {
	t       *testing.T
	objects dynamic.ResourceInterface
}

func (w *widgets) otherClient(version string) otherClient {
	w.t.Helper()
	return otherClient{w.t, w.at(version)}
}

func (s otherClient) paints(name, color string) {
	body := fmt.Appendf(nil, `{"spec":{"color":%q}}`, color)
	if _, err := s.objects.Patch(s.t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "other-client"}); err != nil {
		s.t.Error(err)
	}
}

func (s otherClient) deletes(name string) {
	if err := s.objects.Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Error(err)
	}
}

// mustWait checks a result that asks to be called again, which is no error.
func mustWait(t *testing.T, result reconcile.Result, err error, atMost time.Duration) {
	t.Helper()
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > atMost {
		t.Errorf("reconcile: %+v, %v, want no error and to be called again within %v", result, err, atMost)
	}
}

// contains reports whether the body of a request that is not sent yet has a text.
func contains(t *testing.T, r *http.Request, text string) bool {
	body, err := r.GetBody()
	if err != nil {
		t.Error(err)
		return false
	}
	content, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	return strings.Contains(string(content), text)
}

var (
	byCache  = crdmigrator.ByObjectConfig{UseCache: true}
	byStatus = crdmigrator.ByObjectConfig{UseStatusForStorageVersionMigration: true}
)
