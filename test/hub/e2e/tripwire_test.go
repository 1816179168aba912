package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// provisioner is a controller that would destroy a machine or a cluster, if it saw an object in the wrong state.
type provisioner struct {
	kind schema.GroupVersionKind
	// pause is the annotation that keeps the controller away, and status the path of what it has stored before.
	pause  string
	status []string
}

var provisioners = []provisioner{
	{schema.GroupVersionKind{Group: "metal3.io", Version: "v1alpha1", Kind: "BareMetalHost"}, resource.PauseHost, []string{"status", "provisioning", "state"}},
	{schema.GroupVersionKind{Group: "hive.openshift.io", Version: "v1", Kind: "ClusterDeployment"}, resource.PauseDeployment, []string{"status", "installedTimestamp"}},
}

// harm is what the controller would do to an object that it sees; empty where it would do nothing.
func (p provisioner) harm(o *unstructured.Unstructured) string {
	if _, paused := o.GetAnnotations()[p.pause]; paused {
		return ""
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) > 0 {
		return "deprovision"
	}
	if state, _, _ := unstructured.NestedString(o.Object, p.status...); state == "" {
		return "provision"
	}
	return ""
}

// tripwire watches the objects of all provisioners on a hub, each state of them.
type tripwire struct {
	hub *ocm.Hub

	mutex sync.Mutex
	seen  map[string]int
	trips []string
}

// layTripwire fails the test at its end, if a provisioner would have done harm to an object of one of the clusters, or if
// the tripwire has seen no object of a cluster.
func layTripwire(t *testing.T, h *ocm.Hub, clusters ...string) *tripwire {
	t.Helper()
	w := &tripwire{hub: h, seen: map[string]int{}}
	c, err := client.NewWithWatch(h.Config(), client.Options{Scheme: ocm.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, p := range provisioners {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(p.kind)
		if err := c.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			if err := w.watch(ctx, c, p, list.GetResourceVersion(), clusters); ctx.Err() == nil {
				t.Errorf("the tripwire of %s on hub %s: %v", p.kind.Kind, h.Name, err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	return w
}

// watch sees every state after the one at a version. A watch that the API server ends is continued.
func (w *tripwire) watch(ctx context.Context, c client.WithWatch, p provisioner, version string, clusters []string) error {
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(p.kind)
		events, err := c.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
		if err != nil {
			return err
		}
		for e := range events.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error {
				return fmt.Errorf("the watch is lost: %v", e.Object)
			}
			version = o.GetResourceVersion()
			if e.Type == watch.Deleted || !slices.Contains(clusters, o.GetNamespace()) {
				continue
			}
			w.see(o, p.harm(o))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (w *tripwire) see(o *unstructured.Unstructured, harm string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.seen[o.GetNamespace()]++
	if harm != "" {
		w.trips = append(w.trips, fmt.Sprintf("the controller of %s %s/%s would %s it: annotations %v, status %v", o.GetKind(), o.GetNamespace(), o.GetName(), harm, o.GetAnnotations(), o.Object["status"]))
	}
}

// mustBeIntact fails the test if the tripwire has tripped, or has seen fewer states of a cluster's objects than it has objects.
func (w *tripwire) mustBeIntact(t *testing.T, clusters ...string) {
	t.Helper()
	await(t, "the tripwire on "+w.hub.Name, func(context.Context) error {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, name := range clusters {
			if w.seen[name] < 4 { // three hosts and a deployment
				return errors.New("it has not seen all objects of " + name)
			}
		}
		return nil
	})
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, trip := range w.trips {
		t.Errorf("hub %s: %s", w.hub.Name, trip)
	}
}

// TestTripwire: the tripwire on a hub finds a host that is created without its status, and one that is deleted unpaused.
func TestTripwire(t *testing.T) {
	host := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"provisioning": map[string]any{"state": "provisioned"}}}}
		o.SetFinalizers([]string{"baremetalhost.metal3.io"})
		change(o)
		return o
	}
	paused := func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{resource.PauseHost: ""}) }
	empty := func(o *unstructured.Unstructured) { delete(o.Object, "status") }
	deleted := func(o *unstructured.Unstructured) {
		unstructured.SetNestedField(o.Object, time.Now().UTC().Format(time.RFC3339), "metadata", "deletionTimestamp") //nolint:errcheck // it is an object
	}
	for name, c := range map[string]struct {
		change []func(*unstructured.Unstructured)
		want   string
	}{
		"Provisioned":          {nil, ""},
		"EmptyStatus":          {[]func(*unstructured.Unstructured){empty}, "provision"},
		"EmptyStatusAndPaused": {[]func(*unstructured.Unstructured){empty, paused}, ""},
		"Deleted":              {[]func(*unstructured.Unstructured){deleted}, "deprovision"},
		"DeletedAndPaused":     {[]func(*unstructured.Unstructured){deleted, paused}, ""},
	} {
		o := host(func(o *unstructured.Unstructured) {
			for _, change := range c.change {
				change(o)
			}
		})
		if got := provisioners[0].harm(o); got != c.want {
			t.Errorf("%s: harm %q, want %q", name, got, c.want)
		}
	}
}
