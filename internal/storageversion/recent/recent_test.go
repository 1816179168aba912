package recent

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/internal/kube"
)

func TestWrites(t *testing.T) {
	goose := Write{CRD: kube.Generation{UID: "crd", Generation: 2}, Object: "goose", ResourceVersion: "7"}
	for reason, other := range map[string]Write{
		"another client wrote it since": {CRD: goose.CRD, Object: "goose", ResourceVersion: "8"},
		"another object of that name":   {CRD: goose.CRD, Object: "gander", ResourceVersion: "7"},
		"the CRD changed":               {CRD: kube.Generation{UID: "crd", Generation: 3}, Object: "goose", ResourceVersion: "7"},
		"the CRD was made again":        {CRD: kube.Generation{UID: "crd2", Generation: 2}, Object: "goose", ResourceVersion: "7"},
	} {
		r := New(clocktesting.NewFakePassiveClock(time.Now()))
		r.Add(goose)
		if !r.Has(goose) {
			t.Fatal("what was written is not known")
		}
		if r.Has(other) {
			t.Errorf("%s, yet it counts as written", reason)
		}
	}
}

// A migration of many hours does not start over: what it wrote first is known for
// as long as it continues.
func TestWritesLastAnHourFromTheLastWrite(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	r := New(clock)
	used, unused := Write{Object: "used"}, Write{Object: "unused"}
	r.Add(used)
	r.Add(unused)
	for i := range 3 {
		pass(40 * time.Minute)
		r.Add(Write{Object: "another", ResourceVersion: strconv.Itoa(i)})
		if !r.Has(used) {
			t.Fatal("what every pass asks for was forgotten")
		}
	}
	if r.Has(unused) {
		t.Error("two hours old and still known")
	}
	pass(time.Hour)
	if r.Sweep(); len(r.until) != 0 || len(r.last) != 0 {
		t.Errorf("%d entries of deleted objects stay, and %d of their specs", len(r.until), len(r.last))
	}
}

// Each pass asks for every object, and one of them fails each time: the others are
// not remembered for longer than an hour.
func TestWritesAreBoundedWhileOneObjectFails(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := New(clock)
	for i := range 100 {
		r.Add(Write{Object: types.UID(strconv.Itoa(i))})
	}
	for range 6 {
		clock.SetTime(clock.Now().Add(10 * time.Minute))
		for i := range 100 {
			r.Has(Write{Object: types.UID(strconv.Itoa(i))})
		}
	}
	if r.Sweep(); len(r.until) != 0 {
		t.Errorf("%d objects are remembered an hour after the last write, want none", len(r.until))
	}
}

func TestWritesOfOneCRDAreForgotten(t *testing.T) {
	r := New(clocktesting.NewFakePassiveClock(time.Now()))
	a, b := Write{CRD: kube.Generation{UID: "a", Generation: 1}}, Write{CRD: kube.Generation{UID: "b", Generation: 1}}
	r.Add(a)
	r.Add(b)
	r.Forget("a")
	if r.Has(a) || !r.Has(b) {
		t.Error("forget is to drop one CRD and no other")
	}
}

func TestNoWrites(t *testing.T) {
	var r *Writes
	r.Add(Write{})
	r.Forget("a")
	if r.Has(Write{}) {
		t.Error("nothing can remember nothing")
	}
}
