package crdmigrator

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRecentWrites(t *testing.T) {
	goose := writtenAs{crdGeneration: crdGeneration{"crd", 2}, object: "goose", resourceVersion: "7"}
	for reason, other := range map[string]writtenAs{
		"somebody wrote it since":       {crdGeneration: goose.crdGeneration, object: "goose", resourceVersion: "8"},
		"another object of that name":   {crdGeneration: goose.crdGeneration, object: "gander", resourceVersion: "7"},
		"the definition changed":        {crdGeneration: crdGeneration{"crd", 3}, object: "goose", resourceVersion: "7"},
		"the definition was made again": {crdGeneration: crdGeneration{"crd2", 2}, object: "goose", resourceVersion: "7"},
	} {
		r := newRecentWrites(clocktesting.NewFakePassiveClock(time.Now()))
		r.add(goose)
		if !r.has(goose) {
			t.Fatal("what was written is not known")
		}
		if r.has(other) {
			t.Errorf("%s, yet it counts as written", reason)
		}
	}
}

// A migration of many hours does not start over: what it wrote first is known for
// as long as it goes on.
func TestRecentWritesLastAnHourFromTheLastWrite(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	r := newRecentWrites(clock)
	used, unused := writtenAs{object: "used"}, writtenAs{object: "unused"}
	r.add(used)
	r.add(unused)
	for i := range 3 {
		pass(40 * time.Minute)
		r.add(writtenAs{object: "another", resourceVersion: strconv.Itoa(i)})
		if !r.has(used) {
			t.Fatal("what every pass asks for was forgotten")
		}
	}
	if r.has(unused) {
		t.Error("two hours old and still known")
	}
	pass(time.Hour)
	if r.sweep(); len(r.until) != 0 || len(r.last) != 0 {
		t.Errorf("%d entries of deleted objects stay, and %d of their specs", len(r.until), len(r.last))
	}
}

// Each pass asks for every object, and one of them fails each time: the others are
// not remembered for longer than an hour.
func TestRecentWritesAreBoundedWhileOneObjectFails(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := newRecentWrites(clock)
	for i := range 100 {
		r.add(writtenAs{object: types.UID(strconv.Itoa(i))})
	}
	for range 6 {
		clock.SetTime(clock.Now().Add(10 * time.Minute))
		for i := range 100 {
			r.has(writtenAs{object: types.UID(strconv.Itoa(i))})
		}
	}
	if r.sweep(); len(r.until) != 0 {
		t.Errorf("%d objects are remembered an hour after the last write, want none", len(r.until))
	}
}

// What a resourceVersion proves is not asked of the memory, which would keep it.
func TestProofGoesBeforeMemory(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := (&Migrator{recent: newRecentWrites(clock)}).newRewriter()
	r.epoch.Store(&epoch{key: crdGeneration{"crd", 1}})
	r.baseline.Store(&baseline{since: "5"})
	proven := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "proven", ResourceVersion: "7"}}
	elided := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "elided", ResourceVersion: "3"}}
	for _, o := range []*metav1.PartialObjectMetadata{proven, elided} {
		r.recent.add(r.epoch.Load().key.writtenAs(o))
	}
	clock.SetTime(clock.Now().Add(40 * time.Minute))
	r.recent.add(writtenAs{crdGeneration: crdGeneration{"crd", 1}, object: "another"})
	for name, o := range map[string]*metav1.PartialObjectMetadata{"proven": proven, "elided": elided} {
		if done, err := r.done(o); !done || err != nil {
			t.Errorf("%s: done is %v, %v", name, done, err)
		}
	}
	clock.SetTime(clock.Now().Add(40 * time.Minute))
	r.recent.sweep()
	if r.recent.has(r.epoch.Load().key.writtenAs(proven)) || !r.recent.has(r.epoch.Load().key.writtenAs(elided)) {
		t.Errorf("remembered: %v, want the object that nothing else proves, and the other one no more", r.recent.until)
	}
}

func TestRecentWritesOfOneDefinitionAreForgotten(t *testing.T) {
	r := newRecentWrites(clocktesting.NewFakePassiveClock(time.Now()))
	a, b := writtenAs{crdGeneration: crdGeneration{"a", 1}}, writtenAs{crdGeneration: crdGeneration{"b", 1}}
	r.add(a)
	r.add(b)
	r.forget("a")
	if r.has(a) || !r.has(b) {
		t.Error("forget is to drop one definition and no other")
	}
}

func TestNoRecentWrites(t *testing.T) {
	var r *recentWrites
	r.add(writtenAs{})
	r.forget("a")
	if r.has(writtenAs{}) {
		t.Error("nothing can remember nothing")
	}
}
