package crdmigrator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/etcdgate"
)

// late is a control plane with a second API server whose watch of CRDs can hang: its lease stays fresh, and it goes on with the CRD
// that it knows.
type late struct {
	*widgets
	second *controlplane.APIServer
	gate   *etcdgate.Gate
}

func newLate(t *testing.T, objects int) *late {
	t.Helper()
	plane := ownPlane(t)
	gate, err := etcdgate.New(t.Context(), plane.EtcdEndpoint(), "/registry/apiextensions.k8s.io/customresourcedefinitions")
	if err != nil {
		t.Fatal(err)
	}
	l := &late{widgets: newWidgets(t, plane), gate: gate}
	l.setVersions(typed("v1", true, true, "color", "of"), typed("v2", true, false, "color", "of"))
	l.fill("v1", objects)
	if l.second, err = plane.StartSecondOn(t.Context(), "late", gate.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		gate.Release()
		if err := l.second.Stop(); err != nil {
			t.Error(err)
		}
		_ = gate.Stop()
	})
	if err := controlplane.AwaitServed(t.Context(), l.second.Config(), l.name); err != nil {
		t.Fatal(err)
	}
	return l
}

// store makes v2 the storage version.
func (l *late) store(fields ...string) {
	l.t.Helper()
	l.setVersions(typed("v1", true, false, "color", "of"), typed("v2", true, true, fields...))
	l.awaitStoring("v2")
}

// flipBack makes v1 the storage version again, on both servers.
func (l *late) flipBack() {
	l.t.Helper()
	l.setVersions(typed("v1", true, true, "color", "of"), typed("v2", true, false, "color", "of"))
	l.awaitStoring("v1")
}

// TestServerWhoseWatchHangs: the server that answers has a fresh lease, and has not adopted the storage version. A run waits, with the
// reason, and migrates once the server has adopted it.
func TestServerWhoseWatchHangs(t *testing.T) {
	t.Parallel()
	l := newLate(t, 40)
	l.gate.Hold()
	l.store("color", "of")
	m := newMigrator(t, l.second.Config(), storageversion.Options{Policy: decision.Policy{Settle: 2 * time.Second}})
	plan, err := m.Plan(t.Context(), l.name)
	if err != nil {
		t.Fatal(err)
	}
	var notSettled *decision.NotSettledError
	for began := time.Now(); time.Since(began) < 15*time.Second; time.Sleep(500 * time.Millisecond) { // its lease is renewed meanwhile
		if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &notSettled) {
			t.Fatalf("run: %v, want it to wait for the server", err)
		}
	}
	if !notSettled.Late {
		t.Errorf("run: %v, want the hash in discovery as the reason", notSettled)
	}
	l.mustBeStored("while waiting nothing is written", map[string]int{"v1": 40})

	l.gate.Release()
	l.mustBeMigrated(l.mustMigrate(m), 40)
}

// TestEachServerIsAsked: the server that answers has adopted the storage version, and another one has not, whose lease is fresh. A
// client in the cluster asks it at its own address, waits, and names it.
func TestEachServerIsAsked(t *testing.T) {
	t.Parallel()
	l := newLate(t, 10)
	l.gate.Hold()
	l.store("color", "of")
	ask := func(config *rest.Config) *storageversion.Migrator {
		return newMigrator(t, config, storageversion.Options{Policy: decision.Policy{Settle: -1, AcceptStaleLeases: true}, AskEachServer: true})
	}
	m := ask(l.showing(l.config, l.second.Config()))
	plan, err := m.Plan(t.Context(), l.name)
	if err != nil {
		t.Fatal(err)
	}
	var notSettled *decision.NotSettledError
	await(t, "the leases to prove nothing any more", func() bool {
		if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &notSettled) {
			t.Fatalf("run: %v, want it to wait for the other server", err)
		}
		return notSettled.Late
	})
	second, err := url.Parse(l.second.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	mustSay(t, notSettled.Error(), "the API server at "+second.Host+" has another storage version in discovery")
	l.mustBeStored("while waiting nothing is written", map[string]int{"v1": 10})

	l.gate.Release()
	l.mustBeMigrated(l.mustMigrate(m), 10)

	// A server that does not answer at its address is known by its lease alone.
	l.flipBack()
	gone := rest.CopyConfig(l.config)
	gone.Host = "https://127.0.0.1:1"
	if report := l.mustMigrate(ask(l.showing(l.config, gone))); !report.Trimmed {
		t.Errorf("run: %+v, want it trimmed", report.Storage)
	}
	l.mustBeStored("in the end", map[string]int{"v1": 10})
}

// showing is a client to which the service kubernetes has these servers as endpoints. The API server itself would refuse addresses of
// the loopback interface.
func (l *late) showing(servers ...*rest.Config) *rest.Config {
	l.t.Helper()
	var slice discoveryv1.EndpointSliceList
	for _, s := range servers {
		host, err := url.Parse(s.Host)
		if err != nil {
			l.t.Fatal(err)
		}
		port, err := strconv.ParseInt(host.Port(), 10, 32)
		if err != nil {
			l.t.Fatal(err)
		}
		number := int32(port)
		slice.Items = append(slice.Items, discoveryv1.EndpointSlice{
			Ports: []discoveryv1.EndpointPort{{Port: &number}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{host.Hostname()}}},
		})
	}
	body, err := json.Marshal(slice)
	if err != nil {
		l.t.Fatal(err)
	}
	config := rest.CopyConfig(l.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/endpointslices") {
				return next.RoundTrip(r)
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
			}, nil
		})
	})
	return config
}

// balancer forwards connections to one server at a time.
type balancer struct {
	address string
	target  atomic.Pointer[string]
	conns   chan net.Conn
}

func newBalancer(t *testing.T, to *rest.Config) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{address: listener.Addr().String(), conns: make(chan net.Conn, 1000)}
	b.send(t, to)
	t.Cleanup(func() { _ = listener.Close(); b.cut() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", *b.target.Load())
			if err != nil {
				_ = from.Close()
				continue
			}
			b.conns <- from
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	return b
}

// send sends new connections to another server, and ends those that exist.
func (b *balancer) send(t *testing.T, to *rest.Config) {
	t.Helper()
	host, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	b.target.Store(&host.Host)
	b.cut()
}

func (b *balancer) cut() {
	for {
		select {
		case c := <-b.conns:
			_ = c.Close()
		default:
			return
		}
	}
}

func (b *balancer) config(like *rest.Config) *rest.Config {
	config := rest.CopyConfig(like)
	config.Host = "https://" + b.address
	return config
}

// TestBalancerThatMovesARunToALateServer: the run begins at a server that has adopted the storage version, and goes on at one that has
// not, whose answers say that nothing had to be written. The run does not trim, and the next one migrates all objects.
func TestBalancerThatMovesARunToALateServer(t *testing.T) {
	t.Parallel()
	l := newLate(t, 60)
	l.gate.Hold()
	l.store("color", "of")
	b := newBalancer(t, l.config)
	m := newMigrator(t, b.config(l.config), storageversion.Options{Policy: decision.Policy{Settle: 2 * time.Second}, PageObjects: 10})
	run := l.pauseAfter(t.Context(), m, 15)
	b.send(t, l.second.Config())
	time.AfterFunc(8*time.Second, l.gate.Release)
	report, err := run.resume()
	for errors.Is(err, decision.ErrChanged) {
		report, err = l.migrate(t.Context(), m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !report.Trimmed {
		t.Errorf("run: %+v, want it trimmed in the end", report.Storage)
	}
	l.mustBeStored("in the end", map[string]int{"v2": 60})
}

// TestNewFieldOfAUserSurvivesALateServer: the CRD gains a field during a run, and a user writes it. The server of the run does not
// know the field, and would prune it.
func TestNewFieldOfAUserSurvivesALateServer(t *testing.T) {
	t.Parallel()
	l := newLate(t, 60)
	l.store("color", "of")
	m := newMigrator(t, l.second.Config(), storageversion.Options{Policy: decision.Policy{Settle: 2 * time.Second}, PageObjects: 20})
	run := l.pauseAfter(t.Context(), m, 3)
	l.gate.Hold()
	l.setVersions(typed("v1", true, false, "color", "of"), typed("v2", true, true, "color", "of", "size"))
	written := []string{"w-0010", "w-0019", "w-0030", "w-0059"}
	for _, name := range written { // of the page under way, and of later ones
		await(t, "the field to be known", func() bool {
			o, err := l.at("v2").Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"size":"big"}}`), metav1.PatchOptions{})
			return err == nil && o.Object["spec"].(map[string]any)["size"] == "big"
		})
	}
	report, err := run.resume()
	for errors.Is(err, decision.ErrChanged) {
		report, err = l.migrate(t.Context(), m, nil)
	}
	if err != nil || !report.Trimmed {
		t.Fatalf("run: %+v, %v, want it trimmed", report.Storage, err)
	}
	values := l.values()
	for _, name := range written {
		if value := values[l.key(name)]; !strings.Contains(value, `"size":"big"`) {
			t.Errorf("%s lost what the user wrote: %s", name, value)
		}
	}
	l.mustBeStored("in the end", map[string]int{"v2": 60})
}

// TestServersThatShareALease: two API servers with one host name have one lease. The endpoints of the service kubernetes show it.
func TestServersThatShareALease(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t)
	w := newWidgets(t, plane)
	w.fill("v1", 3)
	w.flip()
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the lease of the API server", func() bool {
		_, err := plane.Identity(t.Context())
		return err == nil
	})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes-others", Namespace: metav1.NamespaceDefault, Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}, {Addresses: []string{"192.0.2.2"}}},
	}
	if _, err := clients.DiscoveryV1().EndpointSlices(slice.Namespace).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	plan := w.mustPlan(w.config, withPreflight(decision.Policy{}))
	mustBeBlocked(t, plan, decision.ReasonServersWithoutLease, 1)
	mustSay(t, plan.Blockers[0].Message, "1 API servers have an identity lease")
	accepted := withPreflight(decision.Policy{AcceptStaleLeases: true})
	w.mustBeMigrated(w.mustMigrate(newMigrator(t, w.config, accepted)), 3)
}

// TestAPIServiceThatShadowsACRD: the API server forwards the group and version to another server, which has no objects. A run must not
// take its empty list for that of the CRD.
func TestAPIServiceThatShadowsACRD(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t)
	w := newWidgets(t, plane)
	w.fill("v1", 6)
	w.flip()
	other := newEndpoint(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/"+w.plural) {
			fmt.Fprintf(rw, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"5"},"items":[]}`)
			return
		}
		_ = json.NewEncoder(rw).Encode(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: w.group + "/v2",
			APIResources: []metav1.APIResource{{Name: w.plural, Kind: w.kind, Namespaced: true, Verbs: metav1.Verbs{"list", "get", "patch"}}},
		})
	}))
	w.forwardTo(other, "v2")
	plan := w.mustPlan(w.config, storageversion.Options{Policy: quickSettle})
	mustBeBlocked(t, plan, decision.ReasonOtherServerAnswers, 1)
	mustSay(t, plan.Blockers[0].Message, "apiservice v2."+w.group+" forwards requests for the objects of "+w.name+" to service default/shadow")
	plan.Blockers, plan.State = nil, decision.Ready // as if it were shadowed after the plan
	plan.Objects = new(int64(6))
	_, err := newMigrator(t, w.config, storageversion.Options{Policy: quickSettle}).Run(t.Context(), plan, nil)
	var blocked *decision.BlockedError
	if !errors.As(err, &blocked) || blocked.Blockers[0].Reason != decision.ReasonOtherServerAnswers {
		t.Errorf("run: %v, want it blocked", err)
	}
	w.mustBeStored("after the runs", map[string]int{"v1": 6})
	w.mustHaveStoredVersions("after the runs", "v1,v2")

	// As the remedy says.
	if err := w.apiservices().Delete(t.Context(), "v2."+w.group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the API server to serve the version itself", func() bool {
		list, err := w.at("v2").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 6
	})
	w.mustBeMigrated(w.mustMigrate(newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})), 6)
}

// TestAPIServiceWhoseServerIsGone: the API server forwards the group and version to a Service that does not exist, as after the move
// from an aggregated API server to CRDs. Plan and run name the APIService, before and after a trim.
func TestAPIServiceWhoseServerIsGone(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, ownPlane(t))
	w.fill("v1", 3)
	w.flip()
	o, err := w.apiservices().Get(t.Context(), "v2."+w.group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the APIService to be of a Service that does not exist", func() bool {
		o.SetLabels(nil) // the API server does not manage it any more
		spec := o.Object["spec"].(map[string]any)
		spec["service"] = map[string]any{"namespace": metav1.NamespaceDefault, "name": "gone", "port": int64(443)}
		spec["insecureSkipTLSVerify"] = true
		if _, err = w.apiservices().Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
			o, _ = w.apiservices().Get(t.Context(), "v2."+w.group, metav1.GetOptions{})
			return false
		}
		_, err = w.at("v2").List(t.Context(), metav1.ListOptions{})
		return apierrors.IsServiceUnavailable(err)
	})
	message := "apiservice v2." + w.group + " forwards requests for the objects of " + w.name + " to service default/gone, which is not available: "
	options := storageversion.Options{Policy: quickSettle}
	plan := w.mustPlan(w.config, options)
	mustBeBlocked(t, plan, decision.ReasonOtherServerAnswers, 1)
	mustSay(t, plan.Blockers[0].Message, message)
	plan.Blockers, plan.State, plan.Unlisted = nil, decision.Ready, nil // as if it were so since the plan
	_, err = newMigrator(t, w.config, options).Run(t.Context(), plan, nil)
	var blocked *decision.BlockedError
	if !errors.As(err, &blocked) || blocked.Blockers[0].Reason != decision.ReasonOtherServerAnswers {
		t.Errorf("run: %v, want it blocked", err)
	}
	w.mustHaveStoredVersions("after the runs", "v1,v2")

	crd, err := w.crds().Get(t.Context(), w.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.Status.StoredVersions = []string{"v2"}
	if _, err := w.crds().UpdateStatus(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	plan = w.mustPlan(w.config, options)
	mustBeBlocked(t, plan, decision.ReasonOtherServerAnswers, 1)
	mustSay(t, plan.Blockers[0].Message, message)
}

func (w *widgets) apiservices() dynamic.ResourceInterface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
}

// forwardTo has the API server forward a version to another server, and waits until it does.
func (w *widgets) forwardTo(e *endpoint, version string) {
	w.t.Helper()
	to, err := url.Parse(e.url)
	if err != nil {
		w.t.Fatal(err)
	}
	port, err := strconv.Atoi(to.Port())
	if err != nil {
		w.t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shadow"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: to.Hostname()}}
	if _, err := clients.CoreV1().Services(metav1.NamespaceDefault).Create(w.t.Context(), service, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	name := version + "." + w.group
	await(w.t, "the APIService to be of the other server", func() bool {
		o, err := w.apiservices().Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		o.SetLabels(nil) // the API server does not manage it any more
		spec := o.Object["spec"].(map[string]any)
		spec["service"] = map[string]any{"namespace": metav1.NamespaceDefault, "name": "shadow", "port": int64(port)}
		spec["insecureSkipTLSVerify"] = true
		if _, err = w.apiservices().Update(w.t.Context(), o, metav1.UpdateOptions{}); err != nil {
			return false
		}
		list, err := w.at(version).List(w.t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}

// TestProxyThatFiltersLists: a proxy shows half of the objects, and passes the API server's own count on.
func TestProxyThatFiltersLists(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/"+w.plural) || r.URL.Query().Get("limit") == "1" {
				return next.RoundTrip(r)
			}
			r = r.Clone(r.Context())
			r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
			resp, err := next.RoundTrip(r)
			if err == nil && resp.StatusCode == http.StatusOK {
				err = dropItems(resp)
			}
			return resp, err
		})
	})
	_, err := w.migrate(t.Context(), newMigrator(t, config, storageversion.Options{Policy: quickSettle}), nil)
	var incomplete *listing.IncompleteError
	if !errors.As(err, &incomplete) || incomplete.Counted != 10 {
		t.Errorf("run: %v, want it to find that 5 of 10 objects were listed", err)
	}
	w.mustHaveStoredVersions("after the run", "v1,v2")
}

// dropItems removes each second item of a list.
func dropItems(resp *http.Response) error {
	var list unstructured.Unstructured
	if err := json.NewDecoder(resp.Body).Decode(&list.Object); err != nil {
		return err
	}
	var kept []any
	items, _ := list.Object["items"].([]any)
	for i, item := range items {
		if i%2 == 0 {
			kept = append(kept, item)
		}
	}
	list.Object["items"] = kept
	body, err := json.Marshal(list.Object)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return err
}

// TestRunWithoutItsPlan: status.storedVersions grows again between the plan and the run, as a remedy of ours asks. The run acts on the
// plan that it was given, and on no other.
func TestRunWithoutItsPlan(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	m := w.quickMigrator(storageversion.Options{})
	w.mustMigrate(m)
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil || plan.State != decision.Clean {
		t.Fatalf("plan: %s, %v, want Clean", plan.State, err)
	}
	w.setStoredVersions("v1", "v2")
	report, err := m.Run(t.Context(), plan, nil)
	if !errors.Is(err, decision.ErrChanged) || report.Trimmed {
		t.Errorf("run: %+v, %v, want it to ask for another plan", report, err)
	}
	w.mustHaveStoredVersions("after the run", "v1,v2")
}

// TestCleanupWaitsForServers: a run that only cleans managedFields writes objects, too. It waits until the servers have settled since the
// last change of the CRD, if there is something to clean.
func TestCleanupWaitsForServers(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	if _, err := w.apply("painter", "v1", "applied", "blue"); err != nil {
		t.Fatal(err)
	}
	w.flip()
	w.mustMigrate(w.quickMigrator(storageversion.Options{Policy: decision.Policy{SkipPhases: []decision.Phase{decision.CleanupManagedFieldsPhase}}}))
	w.setVersions(version("v1", false, false), version("v2", true, true))
	m := newMigrator(t, w.withoutLeases(), storageversion.Options{Policy: decision.Policy{Settle: 4 * time.Second}})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil || !plan.Trimmed {
		t.Fatalf("plan: %+v, %v, want a CRD that is trimmed", plan, err)
	}
	before := w.values()
	_, err = m.Run(t.Context(), plan, nil)
	var notSettled *decision.NotSettledError
	if !errors.As(err, &notSettled) || fmt.Sprint(before) != fmt.Sprint(w.values()) {
		t.Fatalf("run: %v, want it to wait before its first write", err)
	}
	if report := w.mustMigrate(m); report.ManagedFields.Counts.Migrated != 1 {
		t.Errorf("run: %+v, want one object cleaned", report.ManagedFields)
	}
}

// TestStorageVersionHash: the hash that a run expects is that of the API server, before and after a change of the storage version.
func TestStorageVersionHash(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.setVersions(version("v1", true, true), version("v2", true, false))
	discovery := func(crd *apiextensionsv1.CustomResourceDefinition) decision.Answering {
		clients, err := kubernetes.NewForConfig(w.config)
		if err != nil {
			t.Fatal(err)
		}
		list, err := clients.Discovery().ServerResourcesForGroupVersion(w.group + "/v2")
		if err != nil {
			return -1
		}
		for _, r := range list.APIResources {
			if r.Name == w.plural {
				return decision.Discovery{Found: true, Hash: r.StorageVersionHash}.Answering(crd)
			}
		}
		return -1
	}
	stored := w.crd()
	await(t, "discovery of v2", func() bool { return discovery(stored) == decision.AnsweredByAdopted })
	next := stored.DeepCopy()
	next.Spec.Versions[0].Storage, next.Spec.Versions[1].Storage = false, true
	if got := discovery(next); got != decision.AnsweredByLate {
		t.Errorf("before the change: %d, want late", got)
	}
	w.flip()
	await(t, "the hash of the next storage version", func() bool { return discovery(next) == decision.AnsweredByAdopted })
}
