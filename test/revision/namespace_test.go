package revision_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

var (
	workloads = schema.GroupVersionResource{Group: testGroup, Version: "v1", Resource: "workloads"}
	number    atomic.Int64
)

// testNamespace is a test's own namespace.
type testNamespace struct {
	t         *testing.T
	namespace string
	core      kubernetes.Interface
	dynamic   dynamic.Interface
	clock     *testclock.FakePassiveClock
}

func newNamespace(t *testing.T) *testNamespace {
	t.Helper()
	cfg := shared.Config()
	cfg.QPS = -1
	c := &testNamespace{
		t: t, namespace: fmt.Sprintf("revision-%d", number.Add(1)),
		core: kubernetes.NewForConfigOrDie(cfg), dynamic: dynamic.NewForConfigOrDie(cfg),
		clock: testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	c.must(c.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}, metav1.CreateOptions{}))
	return c
}

func (c *testNamespace) must(_ any, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// upgrader works by the testNamespace's clock.
func (c *testNamespace) upgrader(cfg *rest.Config, p decision.Policy) *revision.Upgrader {
	c.t.Helper()
	u, err := revision.New(cfg, testFamily{}, revision.Options{Policy: p, Clock: c.clock})
	c.must(u, err)
	return u
}

// run makes one pass over the namespace, undisturbed.
func (c *testNamespace) run(p decision.Policy) map[string]revision.Result {
	c.t.Helper()
	results := map[string]revision.Result{}
	_, err := c.upgrader(shared.Config(), p).Run(c.t.Context(), revision.Scope{Namespace: c.namespace}, func(r revision.Result) { results[r.Name] = r })
	c.must(nil, err)
	return results
}

func (c *testNamespace) plan(p decision.Policy) map[string]decision.Item {
	c.t.Helper()
	items := map[string]decision.Item{}
	for i, err := range c.upgrader(shared.Config(), p).Plan(c.t.Context(), revision.Scope{Namespace: c.namespace}) {
		c.must(i, err)
		items[i.Name] = i
	}
	return items
}

// workload is made with references by path, as in spec.preset.
func (c *testNamespace) workload(name string, references map[string]string) *unstructured.Unstructured {
	c.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": testGroup + "/v1", "kind": "Workload", "metadata": map[string]any{"name": name}}}
	for path, to := range references {
		if strings.HasPrefix(path, "spec.") {
			c.must(nil, unstructured.SetNestedField(u.Object, to, append(strings.Split(path, "."), "revision")...))
		}
	}
	there, err := c.dynamic.Resource(workloads).Namespace(c.namespace).Create(c.t.Context(), u, metav1.CreateOptions{})
	c.must(there, err)
	return c.status(name, references)
}

// status writes the references that are the controller's.
func (c *testNamespace) status(name string, references map[string]string) *unstructured.Unstructured {
	c.t.Helper()
	return c.change(name, "status", func(o map[string]any) {
		for path, to := range references {
			if strings.HasPrefix(path, "status.") {
				c.must(nil, unstructured.SetNestedField(o, to, append(strings.Split(path, "."), "revision")...))
			}
		}
	})
}

func (c *testNamespace) change(name, subresource string, change func(map[string]any)) *unstructured.Unstructured {
	c.t.Helper()
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	for {
		u, err := c.dynamic.Resource(workloads).Namespace(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
		c.must(u, err)
		change(u.Object)
		var there *unstructured.Unstructured
		if len(subresources) > 0 {
			there, err = c.dynamic.Resource(workloads).Namespace(c.namespace).UpdateStatus(c.t.Context(), u, metav1.UpdateOptions{})
		} else {
			there, err = c.dynamic.Resource(workloads).Namespace(c.namespace).Update(c.t.Context(), u, metav1.UpdateOptions{})
		}
		if !apierrors.IsConflict(err) {
			c.must(there, err)
			return there
		}
	}
}

// store makes a revision that a workload owns; the workload may come later.
func (c *testNamespace) store(name, kind string, owner *unstructured.Unstructured, spec string) *appsv1.ControllerRevision {
	c.t.Helper()
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":%s}`, testGroup+"/v1", kind, strings.ToLower(kind), spec)},
	}
	if owner != nil {
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, schema.GroupVersionKind{Group: testGroup, Version: "v1", Kind: "Workload"})}
	}
	there, err := c.core.AppsV1().ControllerRevisions(c.namespace).Create(c.t.Context(), r, metav1.CreateOptions{})
	c.must(there, err)
	return there
}

// app is a workload of a preset and a profile, each stored at v1, and referred to in
// spec and status.
func (c *testNamespace) app() {
	c.t.Helper()
	m := c.workload("app", map[string]string{"spec.preset": "app-preset", "spec.profile": "app-profile", "status.preset": "app-preset", "status.profile": "app-profile"})
	c.store("app-preset", "Preset", m, `{"minutes":30}`)
	c.store("app-profile", "Profile", m, `{"minutes":5}`)
}

// revisions are the names of all revisions there are, in order.
func (c *testNamespace) revisions() []string {
	c.t.Helper()
	list, err := c.core.AppsV1().ControllerRevisions(c.namespace).List(c.t.Context(), metav1.ListOptions{})
	c.must(list, err)
	var names []string
	for _, r := range list.Items {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// refers are all references of a workload, by path.
func (c *testNamespace) refers(workload string) map[string]string {
	c.t.Helper()
	u, err := c.dynamic.Resource(workloads).Namespace(c.namespace).Get(c.t.Context(), workload, metav1.GetOptions{})
	c.must(u, err)
	all := map[string]string{}
	for _, r := range readWorkload(u).References {
		all[r.Path] = r.Revision
	}
	return all
}

// unresolved finds what must never be: a reference that leads nowhere, or to
// something that can't be read.
func (c *testNamespace) unresolved() error {
	list, err := c.dynamic.Resource(workloads).Namespace(c.namespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, workload := range list.Items {
		for _, ref := range readWorkload(&workload).References {
			r, err := c.core.AppsV1().ControllerRevisions(c.namespace).Get(c.t.Context(), ref.Revision, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("workload %s, %s: %w", workload.GetName(), ref.Path, err)
			}
			if _, err := (testFamily{}).Decode(r, ref.Expected); err != nil {
				return fmt.Errorf("workload %s, %s: %s can't be read: %w", workload.GetName(), ref.Path, r.Name, err)
			}
		}
	}
	return nil
}

func (c *testNamespace) data(name string) map[string]any {
	c.t.Helper()
	r, err := c.core.AppsV1().ControllerRevisions(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(r, err)
	var o map[string]any
	c.must(nil, json.Unmarshal(r.Data.Raw, &o))
	return o
}
