package revisionupgrade

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// cachedTrigger is the trigger of upgrades in these tests.
func cachedTrigger() *v1alpha1.ControllerRevisionUpgradeTrigger {
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "0c9d1a7e-7b1f-4d58-8a55-0b2a4f6f1a11"}}
	trigger.Spec.Retention = &v1alpha1.Retention{TTL: &metav1.Duration{Duration: time.Hour}}
	return trigger
}

// retainedUpgrade is an upgrade as the API server returns it: with all that the manager writes, decoded from JSON, so that it
// shares no memory with another one.
func retainedUpgrade(t *testing.T, i int) *v1alpha1.ControllerRevisionUpgrade {
	t.Helper()
	name := fmt.Sprintf("vm-%05d-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1", i)
	c := candidate{namespace: "edge", name: name, uid: types.UID(fmt.Sprintf("%08x-6d2b-4a47-8f0e-7d2f3f51b102", i))}
	upgrade := upgradeFor(cachedTrigger(), c)
	upgrade.UID, upgrade.ResourceVersion, upgrade.Generation = types.UID(fmt.Sprintf("%08x-0b2a-4d58-8a55-7d2f3f51b102", i)), fmt.Sprint(100000+i), 1
	upgrade.CreationTimestamp = metav1.Now()
	upgrade.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "godwit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:conditions":{` + strings.Repeat(`"k:{\"type\":\"Ready\"}":{},`, 20) + `".":{}}}}`)}}}
	r := revision.Result{
		Item: decision.Item{
			Namespace: "edge", Name: name, UID: c.uid, Version: "v1alpha1", Form: "Object", Target: "v1beta1", Reason: decision.ReasonRetained,
			Message: "no object refers to it any more, since another revision has replaced it",
			Until:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Replacement: name + "-v1beta1",
			References: []decision.ReferenceStatus{
				{Kind: "VirtualMachine", Namespace: "edge", Name: fmt.Sprintf("vm-%05d", i), Path: "/spec/instancetype/revisionName", State: "New"},
				{Kind: "VirtualMachine", Namespace: "edge", Name: fmt.Sprintf("vm-%05d", i), Path: "/status/instancetypeRef/controllerRevisionRef/name", State: "New"},
			},
		},
		Phase: revision.Retained, ResourceVersion: fmt.Sprint(i), Hash: strings.Repeat("a", 64), ReplacementUID: c.uid, ReplacementHash: strings.Repeat("b", 64),
	}
	fill(&upgrade.Status, r)
	summaryOf(upgrade, r).Apply(upgrade)
	text, err := json.Marshal(upgrade)
	if err != nil {
		t.Fatal(err)
	}
	decoded := &v1alpha1.ControllerRevisionUpgrade{}
	if err := json.Unmarshal(text, decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// TestCacheKeepsAKilobytePerUpgrade measures the heap of a cache with its keys and its index, as an informer has them.
func TestCacheKeepsAKilobytePerUpgrade(t *testing.T) {
	const limit = 1024
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what the first one finalized
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	measure := func(upgrades int, transform cache.TransformFunc) uint64 {
		before := heap()
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for i := range upgrades {
			o, err := transform(retainedUpgrade(t, i))
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		each := (heap() - before) / uint64(upgrades)
		runtime.KeepAlive(store)
		return each
	}
	whole := measure(300, ctrlcache.TransformStripManagedFields())
	reduced := measure(3000, NewCacheTransform())
	t.Logf("%d bytes each, of whole ones %d", reduced, whole)
	if reduced > limit {
		t.Errorf("the cache keeps %d bytes of each upgrade, want at most %d", reduced, limit)
	}
	if whole < 2*limit {
		t.Errorf("a whole upgrade of %d bytes is too small for this test", whole)
	}
}

// TestDecisionsFromTheCache: the controllers decide about a reduced upgrade as about the whole one.
func TestDecisionsFromTheCache(t *testing.T) {
	with := func(change func(*v1alpha1.ControllerRevisionUpgrade)) *v1alpha1.ControllerRevisionUpgrade {
		u := retainedUpgrade(t, 7)
		change(u)
		return u
	}
	summary := func(u *v1alpha1.ControllerRevisionUpgrade, phase revision.Phase, reason *godwit.Reason) {
		r := revision.Result{Phase: phase, Item: decision.Item{Reason: reason, Message: "the answer of a webhook"}}
		u.Status.Phase = v1alpha1.UpgradePhase(phase)
		summaryOf(u, r).Apply(u)
	}
	now := metav1.Now()
	transform := NewCacheTransform()
	for name, u := range map[string]*v1alpha1.ControllerRevisionUpgrade{
		"retained": retainedUpgrade(t, 7),
		"without a status": with(func(u *v1alpha1.ControllerRevisionUpgrade) {
			u.Status = v1alpha1.ControllerRevisionUpgradeStatus{ObservedGeneration: -1}
		}),
		"retained for good": with(func(u *v1alpha1.ControllerRevisionUpgrade) {
			u.Spec.Retention = &v1alpha1.Retention{Policy: v1alpha1.RetentionRetain}
		}),
		"another TTL": with(func(u *v1alpha1.ControllerRevisionUpgrade) { u.Spec.Retention.TTL.Duration = 2 * time.Hour }),
		"succeeded":   with(func(u *v1alpha1.ControllerRevisionUpgrade) { summary(u, revision.Succeeded, nil) }),
		"relabelled": with(func(u *v1alpha1.ControllerRevisionUpgrade) {
			summary(u, revision.Succeeded, nil)
			u.Status.Replacement = nil
		}),
		"refused": with(func(u *v1alpha1.ControllerRevisionUpgrade) { summary(u, revision.Failed, decision.ReasonRefused) }),
		"lossy":   with(func(u *v1alpha1.ControllerRevisionUpgrade) { summary(u, revision.Failed, decision.ReasonLossy) }),
		"deferred": with(func(u *v1alpha1.ControllerRevisionUpgrade) {
			summary(u, revision.Converted, decision.ReasonRunning)
		}),
		"in use": with(func(u *v1alpha1.ControllerRevisionUpgrade) {
			summary(u, revision.InUse, decision.ReasonReferenced)
		}),
		"rolled back": with(func(u *v1alpha1.ControllerRevisionUpgrade) { summary(u, revision.RolledBack, nil) }),
		"rolled back, ended": with(func(u *v1alpha1.ControllerRevisionUpgrade) {
			summary(u, revision.RolledBack, nil)
			u.Status.RetainedUntil = nil
		}),
		"suspended":       with(func(u *v1alpha1.ControllerRevisionUpgrade) { u.Spec.Suspend = true; suspended.Apply(u) }),
		"asked for again": with(func(u *v1alpha1.ControllerRevisionUpgrade) { u.Generation = 2 }),
		"of a user": with(func(u *v1alpha1.ControllerRevisionUpgrade) {
			u.Labels, u.OwnerReferences, u.Spec.TargetUID = nil, nil, ""
		}),
		"of another name": with(func(u *v1alpha1.ControllerRevisionUpgrade) { u.Name = "nightly" }),
		"being deleted":   with(func(u *v1alpha1.ControllerRevisionUpgrade) { u.DeletionTimestamp = &now }),
	} {
		want := decisionsAbout(u.DeepCopy())
		for range 2 { // an informer may transform an object again
			o, err := transform(u)
			if err != nil {
				t.Fatal(err)
			}
			u = o.(*v1alpha1.ControllerRevisionUpgrade)
			if diff := cmp.Diff(want, decisionsAbout(u), cmp.AllowUnexported(decisions{}, visit{}, written{}, tally{})); diff != "" {
				t.Errorf("%s (-whole +reduced):\n%s", name, diff)
			}
		}
	}
	trigger := cachedTrigger()
	trigger.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "godwit"}}
	if got, err := transform(trigger); err != nil || !cmp.Equal(got, cachedTrigger()) {
		t.Errorf("another kind: %+v, %v", got, err)
	}
	other := cache.DeletedFinalStateUnknown{Key: "edge/a"} // a deletion that the informer missed
	if got, err := transform(other); err != nil || got != other {
		t.Errorf("%v, %v", got, err)
	}
}

// decisions are all that the controllers decide about a cached upgrade.
type decisions struct {
	Key, Version, Trigger              string
	Deleting                           bool
	Request                            revision.Request
	Counted                            tally
	Ended, Spent, Repeatable, Observed bool
	Unwritten                          bool
	Reason                             string
	JoinsTurns                         bool
}

func decisionsAbout(u *v1alpha1.ControllerRevisionUpgrade) decisions {
	d := decisions{
		Key: u.Namespace + "/" + u.Name + "/" + string(u.UID), Version: u.ResourceVersion, Trigger: string(triggerOf(u).UID) + triggerOf(u).Name + u.Labels[TriggerLabel],
		Deleting: u.DeletionTimestamp != nil, Request: requestFor(u), Ended: isFinished(u), Spent: isUsedUp(u), Repeatable: isRepeatable(u), Observed: isObserved(u),
		Unwritten: u.Status.Phase == "" && len(u.Status.Conditions) == 0, Reason: readyReason(u),
	}
	d.Counted.add(u)
	s, other := &schedule{}, &v1alpha1.ControllerRevisionUpgrade{}
	other.Namespace, other.UID = u.Namespace, "other"
	s.Set(u, visit{next: time.Unix(10, 0)})
	turn, _ := s.Take(u.Namespace, []*v1alpha1.ControllerRevisionUpgrade{u, other}, time.Unix(1, 0))
	d.JoinsTurns = len(turn) == 2
	return d
}

// TestStatusOfACachedUpgrade: the cache has a part of the status. A write reads the rest, and keeps it.
func TestStatusOfACachedUpgrade(t *testing.T) {
	server := retainedUpgrade(t, 7)
	c := newFakeServer(t, server)
	reduced, err := NewCacheTransform()(c.upgrade(t, server))
	if err != nil {
		t.Fatal(err)
	}
	cached := reduced.(*v1alpha1.ControllerRevisionUpgrade)
	u := c.upgrades()
	want := c.upgrade(t, server)
	r := revision.Result{Phase: revision.Succeeded, Item: decision.Item{Name: server.Spec.TargetName, Replacement: server.Status.Replacement.Name}}
	done, err := u.record(t.Context(), cached, r)
	if err != nil {
		t.Fatal(err)
	}
	got := c.upgrade(t, server)
	want.Status.Phase, want.Status.References, want.Status.RetainedUntil = "Succeeded", nil, nil
	want.Status.Conditions = got.Status.Conditions
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if !summaryOf(server, r).Same(got.Status.Conditions) || done.resourceVersion != got.ResourceVersion {
		t.Errorf("%+v, %+v", done, got.Status.Conditions)
	}
	if e := <-c.recorder.Events; !strings.Contains(e, "Normal Succeeded") {
		t.Error(e)
	}
	u.schedule.Set(cached, visit{written: done})
	cached.ResourceVersion, c.reads, c.patches = got.ResourceVersion, 0, 0
	if _, err := u.record(t.Context(), cached, r); err != nil || c.reads+c.patches != 0 {
		t.Errorf("the same result: %d reads, %d patches, %v", c.reads, c.patches, err)
	}
	cached.ResourceVersion = "another client wrote it"
	if _, err := u.record(t.Context(), cached, r); err != nil || c.reads != 1 || c.patches != 0 {
		t.Errorf("after another client's write: %d reads, %d patches, %v", c.reads, c.patches, err)
	}
}

// TestSpecThatChangesDuringAVisitIsObserved: the patch of the status returns the resourceVersion after the change of the spec, which
// changes nothing of the result.
func TestSpecThatChangesDuringAVisitIsObserved(t *testing.T) {
	server := retainedUpgrade(t, 7)
	c := newFakeServer(t, server)
	u, r := c.upgrades(), revision.Result{Phase: revision.Succeeded}
	before := c.upgrade(t, server)
	done, err := u.record(t.Context(), before, r)
	if err != nil {
		t.Fatal(err)
	}
	u.schedule.Set(before, visit{written: done})
	after := c.upgrade(t, server)
	after.Generation++
	if _, err := u.record(t.Context(), after, r); err != nil {
		t.Fatal(err)
	}
	if got := c.upgrade(t, server).Status.ObservedGeneration; got != after.Generation {
		t.Errorf("the status is about generation %d, want %d", got, after.Generation)
	}
}

// TestFirstStatusNeedsNoRead: before the first status the cache has all there is. Thousands of new upgrades cost one request each.
func TestFirstStatusNeedsNoRead(t *testing.T) {
	server := retainedUpgrade(t, 7)
	server.Status = v1alpha1.ControllerRevisionUpgradeStatus{}
	c := newFakeServer(t, server)
	r := revision.Result{Phase: revision.Created, Item: decision.Item{Name: server.Spec.TargetName}}
	if _, err := c.upgrades().record(t.Context(), c.upgrade(t, server), r); err != nil || c.reads != 0 || c.patches != 1 {
		t.Errorf("%d reads, %d patches, %v", c.reads, c.patches, err)
	}
	if got := c.upgrade(t, server); got.Status.Phase != "Created" || !summaryOf(server, r).Same(got.Status.Conditions) {
		t.Errorf("%+v", got.Status)
	}
}

// TestStatusOfADeletedUpgrade: it was deleted, or created again, while its revision was upgraded.
func TestStatusOfADeletedUpgrade(t *testing.T) {
	server := retainedUpgrade(t, 7)
	c := newFakeServer(t, server)
	cached := c.upgrade(t, server)
	cached.UID = "first"
	r := revision.Result{Phase: revision.Succeeded}
	if _, err := c.upgrades().record(t.Context(), cached, r); err != nil || c.patches != 0 {
		t.Errorf("created again: %d patches, %v", c.patches, err)
	}
	if err := c.Delete(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	if _, err := c.upgrades().record(t.Context(), cached, r); err != nil || c.patches != 0 {
		t.Errorf("deleted: %d patches, %v", c.patches, err)
	}
}
