package upgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	testclock "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/correction"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

var (
	machines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	contents = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshotcontents"}
	restores = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinerestores"}
	pools    = schema.GroupVersionResource{Group: "pool.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinepools"}

	number atomic.Int64
)

// Most tests are about one machine of an instance type, and some about its preference
// as well: objects at v1alpha2, labelled.
var (
	instancetype = fixture.Find("F2/VirtualMachineClusterInstancetype/labelled")
	preference   = fixture.Find("F2/VirtualMachinePreference/labelled")
)

const (
	both = fixture.InSpec | fixture.InStatus

	instancetypeTail = "-u1.medium-v1beta1-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1"
	preferenceTail   = "-debian.web-v1beta1-a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203-2"

	inSpec   = "/spec/instancetype/revisionName"
	inStatus = "/status/instancetypeRef/controllerRevisionRef/name"
)

// testNamespace is a test's own namespace. What its clients write, the referenceLog sees.
type testNamespace struct {
	t            *testing.T
	plane        *controlplane.ControlPlane
	namespace    string
	core         kubernetes.Interface
	dynamic      dynamic.Interface
	clock        *testclock.FakePassiveClock
	referenceLog *referenceLog
}

func newNamespace(t *testing.T) *testNamespace {
	t.Helper()
	return newNamespaceOn(t, shared)
}

func newNamespaceOn(t *testing.T, plane *controlplane.ControlPlane) *testNamespace {
	t.Helper()
	plain := plane.Config()
	plain.QPS, plain.ContentType = -1, "application/json" // which the referenceLog reads
	y := &testNamespace{t: t, plane: plane, namespace: fmt.Sprintf("test-%d", number.Add(1)), clock: testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	y.referenceLog = newReferenceLog(dynamic.NewForConfigOrDie(plain), y.namespace)
	seen := (&fault.Transport{After: y.referenceLog.others}).Config(plain)
	y.core, y.dynamic = kubernetes.NewForConfigOrDie(seen), dynamic.NewForConfigOrDie(seen)
	y.must(y.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: y.namespace}}, metav1.CreateOptions{}))
	t.Cleanup(func() {
		for _, wrong := range y.referenceLog.wrong {
			t.Errorf("a reference is lost: %s", wrong)
		}
	})
	return y
}

func (y *testNamespace) must(_ any, err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

// disturbed is an upgrader whose writes go by a transport.
func (y *testNamespace) disturbed(w *fault.Transport, p decision.Policy) *revision.Upgrader {
	y.t.Helper()
	w.After = y.referenceLog.ours
	u, err := revision.New(w.Config(y.plane.Config()), kubevirt.Family{}, revision.Options{Policy: p, Clock: y.clock})
	y.must(u, err)
	return u
}

func (y *testNamespace) upgrader(p decision.Policy) *revision.Upgrader {
	y.t.Helper()
	return y.disturbed(&fault.Transport{}, p)
}

func (y *testNamespace) corrector() *correction.Corrector {
	y.t.Helper()
	c, err := correction.New(y.plane.Config(), kubevirt.Family{})
	y.must(c, err)
	return c
}

// run makes one pass, and returns what became of each revision that was not at the
// target.
func (y *testNamespace) run(p decision.Policy) map[string]revision.Result {
	y.t.Helper()
	return y.pass(y.upgrader(p))
}

func (y *testNamespace) pass(u *revision.Upgrader) map[string]revision.Result {
	y.t.Helper()
	results := map[string]revision.Result{}
	_, err := u.Run(y.t.Context(), revision.Scope{Namespace: y.namespace}, func(r revision.Result) { results[r.Name] = r })
	y.must(nil, err)
	return results
}

// advance takes one revision further, as the manager does.
func (y *testNamespace) advance(p decision.Policy, w revision.Request) revision.Result {
	y.t.Helper()
	results, err := y.upgrader(p).Advance(y.t.Context(), y.namespace, []revision.Request{w})
	y.must(results, err)
	return results[0]
}

// advanceAll takes revisions further in one pass, as the manager does: each with its UID, if it exists.
func (y *testNamespace) advanceAll(u *revision.Upgrader, names ...string) map[string]revision.Result {
	y.t.Helper()
	known, requests := y.revisions(), make([]revision.Request, len(names))
	for n, name := range names {
		requests[n] = revision.Request{Name: name}
		if r := known[name]; r != nil {
			requests[n].UID = r.UID
		}
	}
	all, err := u.Advance(y.t.Context(), y.namespace, requests)
	y.must(all, err)
	results := map[string]revision.Result{}
	for n, r := range all {
		if r.Name != names[n] {
			y.t.Errorf("the result of %s is in the place of %s", r.Name, names[n])
		}
		results[r.Name] = r
	}
	return results
}

func (y *testNamespace) plan(p decision.Policy) map[string]decision.Item {
	y.t.Helper()
	items := map[string]decision.Item{}
	for i, err := range y.upgrader(p).Plan(y.t.Context(), revision.Scope{Namespace: y.namespace}) {
		y.must(i, err)
		items[i.Name] = i
	}
	return items
}

func (y *testNamespace) later(d time.Duration) { y.clock.SetTime(y.clock.Now().Add(d)) }

// retire takes the testNamespace past the retention, and removes what is to go.
func (y *testNamespace) retire() map[string]revision.Result {
	y.t.Helper()
	y.run(decision.Policy{})
	y.later(decision.DefaultRetention)
	return y.run(decision.Policy{})
}

func (y *testNamespace) create(o *unstructured.Unstructured) *unstructured.Unstructured {
	y.t.Helper()
	created, err := cluster.Create(y.t.Context(), y.dynamic, o)
	y.must(created, err)
	return created
}

// createRevisions gives a revision of each fixture to an owner.
func (y *testNamespace) createRevisions(owner *unstructured.Unstructured, of ...fixture.Fixture) {
	y.t.Helper()
	for _, f := range of {
		y.createRevision(f.Revision(owner))
	}
}

func (y *testNamespace) createRevision(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	y.t.Helper()
	created, err := y.core.AppsV1().ControllerRevisions(y.namespace).Create(y.t.Context(), r, metav1.CreateOptions{})
	y.must(created, err)
	return created
}

// machine is a virtual machine with its own revisions of the fixtures.
func (y *testNamespace) machine(name string, at fixture.Fields, of ...fixture.Fixture) *unstructured.Unstructured {
	y.t.Helper()
	vm := y.create(fixture.VirtualMachine(y.namespace, name, at, of...))
	y.createRevisions(vm, of...)
	return vm
}

func (y *testNamespace) read(r schema.GroupVersionResource, name string) *unstructured.Unstructured {
	y.t.Helper()
	o, err := y.dynamic.Resource(r).Namespace(y.namespace).Get(y.t.Context(), name, metav1.GetOptions{})
	y.must(o, err)
	return o
}

// change writes an object, or its status, as often as it takes.
func (y *testNamespace) change(r schema.GroupVersionResource, name, subresource string, change func(map[string]any)) *unstructured.Unstructured {
	y.t.Helper()
	of := y.dynamic.Resource(r).Namespace(y.namespace)
	write := func(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if subresource == "status" {
			return of.UpdateStatus(ctx, o, metav1.UpdateOptions{})
		}
		return of.Update(ctx, o, metav1.UpdateOptions{})
	}
	for {
		o := y.read(r, name)
		change(o.Object)
		there, err := write(y.t.Context(), o)
		if !apierrors.IsConflict(err) {
			y.must(there, err)
			return there
		}
	}
}

// refers are all references of an object, by path.
func (y *testNamespace) refers(r schema.GroupVersionResource, name string) map[string]string {
	y.t.Helper()
	all := map[string]string{}
	for _, ref := range readers[r.Resource].Read(y.read(r, name)).References {
		all[ref.Path] = ref.Revision
	}
	return all
}

func (y *testNamespace) mustRefer(r schema.GroupVersionResource, name string, want map[string]string) {
	y.t.Helper()
	if diff := cmp.Diff(want, y.refers(r, name)); diff != "" {
		y.t.Errorf("%s %s refers otherwise (-want +got):\n%s", r.Resource, name, diff)
	}
}

func (y *testNamespace) revisions() map[string]*appsv1.ControllerRevision {
	y.t.Helper()
	list, err := y.core.AppsV1().ControllerRevisions(y.namespace).List(y.t.Context(), metav1.ListOptions{})
	y.must(list, err)
	all := map[string]*appsv1.ControllerRevision{}
	for _, r := range list.Items {
		all[r.Name] = &r
	}
	return all
}

func (y *testNamespace) mustHave(want ...string) {
	y.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(y.revisions()))); diff != "" {
		y.t.Errorf("other revisions (-want +got):\n%s", diff)
	}
}

func (y *testNamespace) mustResolve() {
	y.t.Helper()
	if broken := y.referenceLog.unresolved(); len(broken) > 0 {
		y.t.Errorf("references that lead nowhere:\n%s", strings.Join(broken, "\n"))
	}
}

func (y *testNamespace) mustBe(results map[string]revision.Result, name string, want revision.Phase, reason *godwit.Reason) revision.Result {
	y.t.Helper()
	r, ok := results[name]
	if !ok {
		y.t.Fatalf("nothing became of %s: %v", name, slices.Sorted(maps.Keys(results)))
	}
	if r.Phase != want || r.Reason != reason {
		y.t.Errorf("%s is %s (%s: %s), want %s (%s)", name, r.Phase, r.Reason, r.Message, want, reason)
	}
	return r
}

func (y *testNamespace) mustPlan(p decision.Policy, name string, want decision.Action, reason *godwit.Reason) decision.Item {
	y.t.Helper()
	i, ok := y.plan(p)[name]
	if !ok {
		y.t.Fatalf("the plan has no %s", name)
	}
	if i.Action != want || i.Reason != reason {
		y.t.Errorf("the plan for %s is %s (%s: %s), want %s (%s)", name, i.Action, i.Reason, i.Message, want, reason)
	}
	return i
}

// object is what a revision holds.
func object(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// set is a change that sets one field; nil removes it.
func set(value any, path ...string) func(map[string]any) {
	return func(o map[string]any) {
		if value == nil {
			unstructured.RemoveNestedField(o, path...)
			return
		}
		if err := unstructured.SetNestedField(o, value, path...); err != nil {
			panic(err) // the objects here have no text where objects belong
		}
	}
}

// normal is an object as it is read from JSON.
func normal(t *testing.T, o map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, text)
}

func must(value any, _ bool, err error) any {
	if err != nil {
		panic(err)
	}
	return value
}

func mustSay(t *testing.T, message, word string) {
	t.Helper()
	if !strings.Contains(message, word) {
		t.Errorf("%q does not say %q", message, word)
	}
}

func (y *testNamespace) remove(r schema.GroupVersionResource, name string) {
	y.t.Helper()
	y.must(nil, y.dynamic.Resource(r).Namespace(y.namespace).Delete(y.t.Context(), name, metav1.DeleteOptions{}))
}

func (y *testNamespace) removeRevision(name string) {
	y.t.Helper()
	y.must(nil, y.core.AppsV1().ControllerRevisions(y.namespace).Delete(y.t.Context(), name, metav1.DeleteOptions{}))
}
