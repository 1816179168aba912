package operator

import (
	"context"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// places bounds the control planes at once to what two cores carry beside the shared
// one, and those that are stopped most of the time.
var places = make(chan struct{}, 3)

// ownPlane starts a control plane for a test alone, once there is a place for it.
func ownPlane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	own := emptyPlane(t)
	if err := installOwnKinds(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	return own
}

// emptyPlane is one without our kinds.
func emptyPlane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	places <- struct{}{}
	t.Cleanup(func() { <-places })
	return startEmptyPlane(t)
}

// startPlane starts one at once.
func startPlane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	own := startEmptyPlane(t)
	if err := installOwnKinds(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	return own
}

func startEmptyPlane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	own := controlplane.Options{}.StartFor(t)
	return own
}

// slowly is the configuration of a manager that takes its time with the objects of
// the test's group, so that something can happen in between.
func (c *cluster) slowly(perSecond int) string {
	return "storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s, maxWritesPerSecond: " + strconv.Itoa(perSecond) + "}}"
}

// awaitMiddle waits until some objects are migrated, as etcd has it, and some not.
func (c *cluster) awaitMiddle(crd string, n int) {
	c.t.Helper()
	c.await("objects being written", func() bool {
		done := c.stored(crd, "v2")
		if done >= n {
			c.t.Fatalf("all of the %d objects were written before anything happened", n)
		}
		return done > n/10
	})
}

// mustBeMigratedOnce checks the end of a migration that met trouble: every object
// is at v2 and was written twice, by its creation and by one migration, and the old
// version left storedVersions after the last of them.
func (c *cluster) mustBeMigratedOnce(crd string, n int) {
	c.t.Helper()
	c.mustBeStored(crd, map[string]int{"v2": n, "v1": 0})
	if got := c.revisions(crd); got != 2*int64(n) {
		c.t.Errorf("%d revisions of %d objects, want two each: created, migrated", got, n)
	}
	c.mustBeTrimmedLast(crd)
}

// mustBeTrimmedLast: the trim is the last write of a CRD.
func (c *cluster) mustBeTrimmedLast(crd string) {
	c.t.Helper()
	if got := c.storedVersions(crd); got != "v2" {
		c.t.Errorf("storedVersions of %s is %s", crd, got)
	}
	stored, err := c.plane.Etcd().Get(c.t.Context(), "/registry/apiextensions.k8s.io/customresourcedefinitions/"+crd)
	if err != nil || len(stored.Kvs) != 1 {
		c.t.Fatalf("%s in etcd: %v, %v", crd, stored, err)
	}
	plural, group, _ := strings.Cut(crd, ".")
	objects, err := c.plane.Etcd().Get(c.t.Context(), "/registry/"+group+"/"+plural+"/", clientv3.WithLastRev()...)
	if err != nil || len(objects.Kvs) != 1 {
		c.t.Fatalf("the last object of %s in etcd: %v, %v", crd, objects, err)
	}
	if trimmed, written := stored.Kvs[0].ModRevision, objects.Kvs[0].ModRevision; trimmed < written {
		c.t.Errorf("%s was trimmed at revision %d, before %s was written at %d", crd, trimmed, objects.Kvs[0].Key, written)
	}
}

// mustNotBeDone: whatever stands in the way, nothing is claimed and nothing trimmed.
func (c *cluster) mustNotBeDone(crd string) {
	c.t.Helper()
	if m := c.migration(crd); meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady) {
		c.t.Errorf("%s is Ready with objects that can't be written: %+v", crd, m.Status)
	}
	if got := c.storedVersions(crd); got != "v1,v2" {
		c.t.Errorf("storedVersions of %s is %s with objects that can't be written", crd, got)
	}
}

// history is every state of a key in etcd, the oldest first.
func (c *cluster) history(key string) []map[string]any {
	c.t.Helper()
	now, err := c.plane.Etcd().Get(c.t.Context(), key)
	if err != nil || len(now.Kvs) != 1 {
		c.t.Fatalf("%s in etcd: %v, %v", key, now, err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	var states []map[string]any
	for answer := range c.plane.Etcd().Watch(ctx, key, clientv3.WithRev(now.Kvs[0].CreateRevision)) {
		if err := answer.Err(); err != nil {
			c.t.Fatal(err)
		}
		for _, event := range answer.Events {
			var state unstructured.Unstructured
			if err := state.UnmarshalJSON(event.Kv.Value); err != nil {
				c.t.Fatal(err)
			}
			states = append(states, state.Object)
			if event.Kv.ModRevision >= now.Kvs[0].ModRevision {
				return states
			}
		}
	}
	return states
}
