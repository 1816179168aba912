package upgrade_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/fault"
)

// TestEveryWriteMayGoWrong: a fault befalls one write after the other, of the upgrade
// of a machine with both roles and of a snapshot of it, and of the removal that
// follows the retention. The next pass continues. Each reference resolves after every
// write, and in the end nothing old is left, nor a revision too many.
func TestEveryWriteMayGoWrong(t *testing.T) {
	faults := fault.All()
	faults["answered by AlreadyExists, with equal content"] = fault.Occupied(nil)
	for name, one := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				y := newNamespace(t)
				w := y.disturb(at, one)
				y.mustResolve()
				want := []string{"nightly" + preferenceTail, "nightly" + instancetypeTail, "web" + preferenceTail, "web" + instancetypeTail}
				if got := slices.Sorted(maps.Keys(y.revisions())); !slices.Equal(got, want) {
					t.Errorf("write %d of %q: revisions %v in the end", at, w.Writes(), got)
				}
				if at >= len(w.Writes()) {
					return
				}
			}
		})
	}
}

// disturb upgrades a machine and its snapshot, past the retention, while a fault
// befalls the write of a number.
func (y *testNamespace) disturb(at int, one fault.Fault) *fault.Transport {
	y.machine("web", both, instancetype, preference)
	virtController{y}.snapshot("web", "nightly")
	w := &fault.Transport{At: at, Fault: one}
	pass := func() {
		u := y.disturbed(w, decision.Policy{})
		w.Run(y.t.Context(), func(ctx context.Context) { _, _ = u.Run(ctx, revision.Scope{Namespace: y.namespace}, nil) })
	}
	pass()
	y.run(decision.Policy{}) // the next client, undisturbed
	y.later(decision.DefaultRetention)
	pass()
	y.run(decision.Policy{})
	return w
}

// TestNameIsTakenByAnother: another client creates a revision of each replacement's name that
// holds something else, a moment before us. It is left alone, and the replacement has a
// name with a suffix; if that is taken as well, nothing is led anywhere.
func TestNameIsTakenByAnother(t *testing.T) {
	t.Parallel()
	other := fault.Occupied(func(body []byte) []byte {
		return bytes.Replace(body, []byte(`"guest":"4Gi"`), []byte(`"guest":"9Gi"`), 1)
	})
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	source := instancetype.RevisionName("web")
	result := y.pass(y.disturbed(&fault.Transport{Fault: other}, decision.Policy{}))[source]
	if result.Phase != revision.Retained || !strings.HasPrefix(result.Replacement, "web"+instancetypeTail+"-") {
		t.Errorf("%s (%s: %s), replacement %s", result.Phase, result.Reason, result.Message, result.Replacement)
	}
	y.mustRefer(machines, "web", map[string]string{inSpec: result.Replacement, inStatus: result.Replacement})
	y.retire()
	y.mustHave("web"+instancetypeTail, result.Replacement)
	y.mustResolve()
}

// TestBothNamesAreTaken by revisions that hold something else.
func TestBothNamesAreTaken(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.machine("web", both, instancetype)
	source := instancetype.RevisionName("web")
	suffixed := y.dryName(vm.GetName())
	for _, name := range []string{"web" + instancetypeTail, suffixed} {
		taken := preference.Revision(vm)
		taken.Name = name
		y.createRevision(taken)
	}
	y.mustBe(y.run(decision.Policy{}), source, revision.Failed, decision.ReasonNameTaken)
	y.mustHave(source, "web"+instancetypeTail, suffixed)
	y.mustRefer(machines, "web", map[string]string{inSpec: source, inStatus: source})
	y.mustResolve()
}

// dryName is the name that an upgrade takes when the first is taken: it is upgraded
// so, and rolled back for good.
func (y *testNamespace) dryName(vm string) string {
	y.t.Helper()
	first := preference.Revision(y.read(machines, vm))
	first.Name = vm + instancetypeTail
	y.createRevision(first)
	source := instancetype.RevisionName(vm)
	name := y.mustBe(y.run(decision.Policy{}), source, revision.Retained, decision.ReasonRetained).Replacement
	for range 2 {
		if r := y.advance(decision.Policy{}, revision.Request{Name: source, Rollback: true}); r.Phase != revision.RolledBack {
			y.t.Fatalf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
		}
		y.later(decision.DefaultRetention)
	}
	y.removeRevision(first.Name)
	return name
}
