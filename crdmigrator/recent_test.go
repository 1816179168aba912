package crdmigrator

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestRecentWrites(t *testing.T) {
	goose := writtenAs{change: change{"crd", 2}, object: "goose", resourceVersion: "7"}
	for reason, other := range map[string]writtenAs{
		"somebody wrote it since":       {change: goose.change, object: "goose", resourceVersion: "8"},
		"another object of that name":   {change: goose.change, object: "gander", resourceVersion: "7"},
		"the definition changed":        {change: change{"crd", 3}, object: "goose", resourceVersion: "7"},
		"the definition was made again": {change: change{"crd2", 2}, object: "goose", resourceVersion: "7"},
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

func TestRecentWritesLastAnHourFromTheirLastUse(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	r := newRecentWrites(clock)
	used, unused := writtenAs{object: "used"}, writtenAs{object: "unused"}
	r.add(used)
	r.add(unused)
	for range 3 {
		pass(40 * time.Minute)
		if !r.has(used) {
			t.Fatal("what every pass asks for was forgotten")
		}
	}
	if r.has(unused) {
		t.Error("two hours old and still known")
	}
	r.sweep()
	if len(r.until) != 1 {
		t.Errorf("%d entries after the sweep, want the one in use", len(r.until))
	}
	pass(time.Hour)
	if r.sweep(); len(r.until) != 0 {
		t.Errorf("%d entries of deleted objects stay", len(r.until))
	}
}

func TestRecentWritesOfOneDefinitionAreForgotten(t *testing.T) {
	r := newRecentWrites(clocktesting.NewFakePassiveClock(time.Now()))
	a, b := writtenAs{change: change{"a", 1}}, writtenAs{change: change{"b", 1}}
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
