package operator

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/cmd/internal/controller/crdscope"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/fault"
)

// stale is a CRD that is trimmed, and whose objects' managedFields name a version that
// is not served: only a scan of the objects finds out.
func (c *cluster) stale() string {
	c.t.Helper()
	crd := c.define("geese", 2, nil)
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": "grey"}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: "v1", Kind: "Geese"})
	o.SetName("owned")
	if err := c.Create(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
	c.flip(crd)
	there, err := controlplane.UpdateCRD(c.t.Context(), c.plane.Config(), crd, func(there *apiextensionsv1.CustomResourceDefinition) {
		there.Spec.Versions[0].Served = false
	})
	if err != nil {
		c.t.Fatal(err)
	}
	before := there.DeepCopy()
	there.Status.StoredVersions = []string{"v2"}
	if err := c.Status().Patch(c.t.Context(), there, client.MergeFrom(before)); err != nil {
		c.t.Fatal(err)
	}
	return crd
}

// scopeLoop is the manager's, with an answer before the API server.
func (c *cluster) scopeLoop(answer fault.Answer) *crdscope.Reconciler {
	c.t.Helper()
	cfg := fault.Answering(c.plane.Config(), answer)
	planner, err := storageversion.New(cfg, storageversion.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	scanner, err := storageversion.New(cfg, storageversion.Options{Scan: true})
	if err != nil {
		c.t.Fatal(err)
	}
	return &crdscope.Reconciler{
		Client: c.Client, Scope: crdscope.Scope{{Group: c.group, LabelSelector: labels.Everything()}}, Planner: planner, Scanner: scanner,
	}
}

// TestFailedScanIsNotRemembered: an API server that answers 429 to the
// first scan leaves no result, and the next scan finds all revisions.
func TestFailedScanIsNotRemembered(t *testing.T) {
	for name, broken := range map[string]func(*http.Request) bool{
		"every list":      func(*http.Request) bool { return true },
		"pages of a scan": func(req *http.Request) bool { return req.URL.Query().Get("limit") == "50" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			crd := c.stale()
			var healthy atomic.Bool
			loop := c.scopeLoop(func(req *http.Request) *http.Response {
				if healthy.Load() || !fault.Listing(req, c.group, "geese") || !broken(req) {
					return nil
				}
				return fault.Status(http.StatusTooManyRequests, "TooManyRequests", "not now")
			})
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: crd}}
			if _, err := loop.Reconcile(t.Context(), request); err == nil {
				t.Error("a scan that listed nothing is no error")
			}
			if c.migration(crd) != nil {
				t.Fatal("one list that failed made a CRDMigration")
			}
			healthy.Store(true)
			if _, err := loop.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if c.migration(crd) == nil {
				t.Error("the next scan was not made: the first is remembered as clean")
			}
		})
	}
}

// proxied leads a process to the API server by a proxy, in which the answer sees each
// request first.
func (c *cluster) proxied(answer fault.Answer) *rest.Config {
	c.t.Helper()
	transport, err := rest.TransportFor(fault.Answering(c.plane.Config(), answer))
	if err != nil {
		c.t.Fatal(err)
	}
	target, err := url.Parse(c.plane.Config().Host)
	if err != nil {
		c.t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
	})
	c.t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestStormOf429LeavesNoScanBehind: a manager that is answered 429 to each list of its
// scans cleans managedFields once the storm is over, without a restart.
func TestStormOf429LeavesNoScanBehind(t *testing.T) {
	c := newCluster(t)
	crd := c.stale()
	var calm atomic.Bool
	var rejected atomic.Int64
	config := c.proxied(func(req *http.Request) *http.Response {
		if calm.Load() || !fault.Listing(req, c.group, "geese") {
			return nil
		}
		rejected.Add(1)
		return fault.Status(http.StatusTooManyRequests, "TooManyRequests", "not now")
	})
	c.manageAs(config, "storageVersionMigrator: {scopes: [{group: "+c.group+", labelSelector: {}}], defaults: {settle: 0s}}")
	c.await("a scan to end with 429", func() bool { return rejected.Load() > 4 }) // it makes 4 attempts
	calm.Store(true)
	m := c.awaitReason(crd, decision.ReasonSucceeded.Name)
	if m.Status.ManagedFields == nil || m.Status.ManagedFields.Migrated != 1 {
		t.Errorf("managedFields are %+v, want 1 object cleaned", m.Status.ManagedFields)
	}
}

// TestListThatStaysForbiddenIsReported by a CRDMigration, which names the permission.
func TestListThatStaysForbiddenIsReported(t *testing.T) {
	c := newCluster(t)
	crd := c.define("geese", 2, nil)
	loop := c.scopeLoop(func(req *http.Request) *http.Response {
		if !fault.Listing(req, c.group, "geese") {
			return nil
		}
		return fault.Status(http.StatusForbidden, "Forbidden", `geese is forbidden: User "godwit" cannot list resource "geese"`)
	})
	request := reconcile.Request{NamespacedName: client.ObjectKey{Name: crd}}
	looks := 0
	for ; c.migration(crd) == nil && looks < 10; looks++ {
		_, _ = loop.Reconcile(t.Context(), request) // an error until users are told
	}
	if looks != 5 || c.migration(crd) == nil {
		t.Errorf("told after %d scans, want 5", looks)
	}
}
