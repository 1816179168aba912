package upgrade_test

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// seen lets a test act once, before the nth request that it picks.
type seen struct {
	pick func(*http.Request) bool
	nth  int
	act  func()

	mu    sync.Mutex
	count int
	acted bool
}

func (s *seen) config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			s.mu.Lock()
			if s.pick(req) {
				if s.count++; s.count == s.nth {
					s.act()
					s.acted = true
				}
			}
			s.mu.Unlock()
			return next.RoundTrip(req)
		})
	})
	return cfg
}

// watched is an upgrader whose requests a test picks from.
func (y *testNamespace) watched(s *seen, c clock.PassiveClock) *revision.Upgrader {
	y.t.Helper()
	u, err := revision.New(s.config(shared.Config()), kubevirt.Family{}, revision.Options{Clock: c})
	y.must(u, err)
	return u
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func listsRevisions(req *http.Request) bool {
	return req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/controllerrevisions")
}

func readsARevision(req *http.Request) bool {
	return req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/controllerrevisions/")
}

func writes(req *http.Request) bool { return req.Method != http.MethodGet }

// collect deletes a machine and, as the garbage collector does, what it owns.
func (y *testNamespace) collect(vm string) {
	y.t.Helper()
	owner := y.read(machines, vm).GetUID()
	y.remove(machines, vm)
	for name, r := range y.revisions() {
		if by := metav1.GetControllerOf(r); by != nil && by.UID == owner {
			y.removeRevision(name)
		}
	}
}

// TestMachineDeletedDuringARun, before any of its requests, with all it owns: nothing is
// left to upgrade, and nothing to restore from a backup either.
func TestMachineDeletedDuringARun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pick    func(*http.Request) bool
		oldScan bool
	}{
		"lists":                  {pick: listsRevisions},
		"reads":                  {pick: readsARevision, oldScan: true},
		"writes":                 {pick: writes},
		"writes, by an old scan": {pick: writes, oldScan: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for nth := 1; ; nth++ {
				y := newNamespace(t)
				y.machine("web", both, instancetype, preference)
				s := &seen{pick: test.pick, nth: nth, act: func() { y.collect("web") }}
				u := y.watched(s, y.clock)
				if test.oldScan {
					u = y.watched(s, slowClock{y.clock})
				}
				report, err := u.Run(t.Context(), revision.Scope{Namespace: y.namespace}, func(r revision.Result) {
					if strings.Contains(r.Message, "backup") {
						t.Errorf("deleted before number %d of what it %s, %s is %s (%s: %s)", nth, name, r.Name, r.Phase, r.Reason, r.Message)
					}
				})
				y.must(nil, err)
				if c := report.Counts; c.Failed+c.Blocked > 0 {
					t.Errorf("deleted before number %d of what it %s: %+v, %v", nth, name, c, report.Failures)
				}
				if !s.acted {
					break
				}
				for _, i := range y.plan(decision.Policy{}) {
					if i.Action == decision.Blocked {
						t.Errorf("deleted before number %d of what it %s, the plan says %+v", nth, name, i)
					}
				}
			}
		})
	}
}

// TestRunNamesWhatItDoesNotUpgrade: what became blocked since the plan has a name in the report of the run, not only a count.
func TestRunNamesWhatItDoesNotUpgrade(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype, preference)
	y.removeRevision(instancetype.RevisionName("web"))
	found := map[string]decision.Action{}
	report, err := y.upgrader(decision.Policy{}).Run(t.Context(), revision.Scope{Namespace: y.namespace}, func(r revision.Result) { found[r.Name] = r.Action })
	y.must(report, err)
	want := map[string]decision.Action{instancetype.RevisionName("web"): decision.Blocked, preference.RevisionName("web"): decision.Upgrade}
	if !maps.Equal(found, want) || report.Counts.Blocked != 1 {
		t.Errorf("the run names %v and counts %+v, want %v", found, report.Counts, want)
	}
}

// TestMachineDeletedDuringAPlan, between the lists of which a plan is made.
func TestMachineDeletedDuringAPlan(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 2; nth++ {
		y := newNamespace(t)
		vm := y.machine("web", both, instancetype, preference)
		y.createRevision(fixture.StartRevision(vm))
		s := &seen{pick: listsRevisions, nth: nth, act: func() { y.collect("web") }}
		for i, err := range y.watched(s, y.clock).Plan(t.Context(), revision.Scope{Namespace: y.namespace}) {
			y.must(i, err)
			t.Errorf("deleted before list %d: %+v", nth, i)
		}
	}
}

// TestMachineIsDeletedAfterItsRevisions, as foreground deletion and a finalizer have it.
func TestMachineIsDeletedAfterItsRevisions(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := fixture.VirtualMachine(y.namespace, "web", both, instancetype)
	vm.SetFinalizers([]string{"example.com/keep"})
	vm = y.create(vm)
	y.createRevisions(vm, instancetype)
	source := instancetype.RevisionName("web")
	s := &seen{pick: readsARevision, nth: 1, act: func() { y.collect("web") }}
	y.mustBe(y.pass(y.watched(s, slowClock{y.clock})), source, revision.Skipped, decision.ReasonTerminating)
	i := y.mustPlan(decision.Policy{}, source, decision.Deferred, decision.ReasonTerminating)
	if !strings.Contains(i.Message, "VirtualMachine web") {
		t.Errorf("%q does not say what is being deleted", i.Message)
	}
	y.must(y.dynamic.Resource(machines).Namespace(y.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	if left := y.plan(decision.Policy{}); len(left) > 0 {
		t.Errorf("the machine is gone, and the plan has %v", left)
	}
}

// TestStartRevisionOfAMachineThatIsGone refers to nothing any more.
func TestStartRevisionOfAMachineThatIsGone(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	vm := y.create(fixture.Running(fixture.VirtualMachine(y.namespace, "web", both, instancetype)))
	y.createRevision(fixture.StartRevision(vm))
	y.remove(machines, "web")
	if left := y.plan(decision.Policy{}); len(left) > 0 {
		t.Errorf("the plan has %v", left)
	}
}

// TestNamespaceIsBeingDeleted: nothing can be made in it, and what is gone went first.
func TestNamespaceIsBeingDeleted(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	y.machine("db", both, preference)
	y.must(nil, y.core.CoreV1().Namespaces().Delete(t.Context(), y.namespace, metav1.DeleteOptions{}))
	y.removeRevision(preference.RevisionName("db"))
	i := y.mustPlan(decision.Policy{}, preference.RevisionName("db"), decision.Deferred, decision.ReasonTerminating)
	if !strings.Contains(i.Message, "namespace "+y.namespace) {
		t.Errorf("%q does not say what is being deleted", i.Message)
	}
	var result revision.Result
	report, err := y.upgrader(decision.Policy{}).Run(t.Context(), revision.Scope{Namespace: y.namespace}, func(r revision.Result) { result = r })
	y.must(nil, err)
	if c := report.Counts; c.Deferred != 2 || c.Failed+c.Blocked+c.Pending > 0 {
		t.Errorf("%+v, %v", c, report.Failures)
	}
	if result.Reason != decision.ReasonTerminating || !strings.Contains(result.Message, "namespace "+y.namespace) {
		t.Errorf("%s (%s: %s)", result.Phase, result.Reason, result.Message)
	}
	if r := y.advance(decision.Policy{}, revision.Request{Name: preference.RevisionName("db")}); r.Phase != revision.Skipped || r.Reason != decision.ReasonTerminating {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
}

// TestPoolOfARunningMachine: KubeVirt writes the template to all machines of the pool,
// labels and annotations too, whichever revisions they name.
func TestPoolOfARunningMachine(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	pinned := "/spec/virtualMachineTemplate/spec/instancetype/revisionName"
	source := instancetype.RevisionName("golden")
	pool := y.create(fixture.Pool(y.machine("golden", both, instancetype), "fleet"))
	vm := fixture.Running(fixture.VirtualMachine(y.namespace, "fleet-0", both, preference))
	vm.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(pool, pool.GroupVersionKind())})
	y.createRevisions(y.create(vm), preference)
	i := y.mustPlan(decision.Policy{}, source, decision.Deferred, decision.ReasonRunning)
	for _, part := range []string{"VirtualMachine fleet-0", "VirtualMachinePool fleet"} {
		if !strings.Contains(i.Message, part) {
			t.Errorf("%q does not say %s", i.Message, part)
		}
	}
	y.run(decision.Policy{})
	y.mustRefer(pools, "fleet", map[string]string{pinned: source})

	y.stop("fleet-0")
	y.change(machines, "fleet-0", "status", set("nightly", "status", "restoreInProgress"))
	y.mustPlan(decision.Policy{}, source, decision.Deferred, decision.ReasonReferrerNotReady)
	y.mustPlan(decision.Policy{OnRunning: decision.Hold}, source, decision.Deferred, decision.ReasonReferrerNotReady)
	y.change(machines, "fleet-0", "status", set(nil, "status", "restoreInProgress"))
	y.run(decision.Policy{})
	y.mustRefer(pools, "fleet", map[string]string{pinned: "golden" + instancetypeTail})
}

// TestPoolOfARunningMachineWithHold is written: the user has asked for it.
func TestPoolOfARunningMachineWithHold(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	pool := y.create(fixture.Pool(y.machine("golden", both, instancetype), "fleet"))
	vm := fixture.Running(fixture.VirtualMachine(y.namespace, "fleet-0", both, preference))
	vm.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(pool, pool.GroupVersionKind())})
	y.createRevisions(y.create(vm), preference)
	y.run(decision.Policy{OnRunning: decision.Hold})
	y.mustRefer(pools, "fleet", map[string]string{"/spec/virtualMachineTemplate/spec/instancetype/revisionName": "golden" + instancetypeTail})
}
