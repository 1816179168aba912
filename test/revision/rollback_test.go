package revision_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/fault"
)

var back = revision.Request{Name: "app-preset", Rollback: true}

// upgraded is a namespace with one workload, whose preset is upgraded and retained.
func upgraded(t *testing.T) *testNamespace {
	t.Helper()
	c := newNamespace(t)
	c.store("app-preset", "Preset", c.workload("app", both("app-preset")), `{"minutes":1}`)
	c.run(decision.Policy{})
	return c
}

func (c *testNamespace) mustEnd(w revision.Request, want revision.Phase, reason *godwit.Reason) revision.Result {
	c.t.Helper()
	r := c.pass(shared.Config(), 0, decision.Policy{}, w)
	if r.Phase != want || r.Reason != reason {
		c.t.Errorf("%s is %s (%s: %s), want %s (%s)", w.Name, r.Phase, r.Reason, r.Message, want, reason)
	}
	return r
}

func (c *testNamespace) mustHave(want ...string) {
	c.t.Helper()
	if got := c.revisions(); !slices.Equal(got, want) {
		c.t.Errorf("revisions %v, want %v", got, want)
	}
}

// names has a workload's specification name a revision.
func (c *testNamespace) names(workload, revision string) {
	c.t.Helper()
	c.change(workload, "", func(o map[string]any) {
		c.must(nil, unstructured.SetNestedField(o, revision, "spec", "preset", "revision"))
	})
}

// TestRollbackWritesTheSourceFirst, so that a removal which is under way conflicts, and
// one that comes after an interrupted rollback does not happen.
func TestRollbackWritesTheSourceFirst(t *testing.T) {
	c := upgraded(t)
	before, err := c.core.AppsV1().ControllerRevisions(c.namespace).Get(t.Context(), "app-preset", metav1.GetOptions{})
	c.must(before, err)
	w := &fault.Transport{At: 1, Fault: fault.All()["killed before the write"]}
	w.Run(t.Context(), func(ctx context.Context) {
		_, _ = c.upgrader(w.Config(shared.Config()), decision.Policy{}).Advance(ctx, c.namespace, []revision.Request{back})
	})
	if first := w.Writes()[0]; !strings.HasSuffix(first, "/controllerrevisions/app-preset") {
		t.Errorf("the first write is %s", first)
	}
	err = c.core.AppsV1().ControllerRevisions(c.namespace).Delete(t.Context(), "app-preset", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &before.UID, ResourceVersion: &before.ResourceVersion},
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("a removal that was under way: %v", err)
	}
	c.later(2 * decision.DefaultRetention)
	c.pass(shared.Config(), 0, decision.Policy{}, revision.Request{Name: "app-preset"}) // as a trigger does
	c.mustHave("app-preset", "app-preset-v2")
	c.mustEnd(back, revision.RolledBack, decision.ReasonRetained)
	c.mustRefer("app", both("app-preset"))
}

// TestRollbackAfterTheRemoval: the old revision was deleted first, so that no source is left to roll back to.
func TestRollbackAfterTheRemoval(t *testing.T) {
	c := upgraded(t)
	w := &fault.Transport{Before: func(n int) {
		if n == 0 {
			c.must(nil, c.core.AppsV1().ControllerRevisions(c.namespace).Delete(t.Context(), "app-preset", metav1.DeleteOptions{}))
		}
	}}
	results, err := c.upgrader(w.Config(shared.Config()), decision.Policy{}).Advance(t.Context(), c.namespace, []revision.Request{back})
	c.must(results, err)
	if r := results[0]; r.Phase != revision.Failed || r.Reason != decision.ReasonIrreversible {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	c.mustRefer("app", both("app-preset-v2"))
	c.must(nil, c.unresolved())
}

// TestRollbackKeepsTheNewRevision for the retention, and late references to it are repointed:
// while it is there, and when it is gone.
func TestRollbackKeepsTheNewRevision(t *testing.T) {
	c := upgraded(t)
	r := c.mustEnd(back, revision.RolledBack, decision.ReasonRetained)
	if want := c.clock.Now().Add(decision.DefaultRetention); !r.Until.Equal(want) {
		t.Errorf("it is kept until %s, want %s", r.Until, want)
	}
	c.mustRefer("app", both("app-preset"))
	c.mustHave("app-preset", "app-preset-v2")

	c.later(decision.DefaultRetention)
	c.names("app", "app-preset-v2")
	c.mustEnd(back, revision.RolledBack, decision.ReasonRetained) // led back again, and counted from now
	c.mustRefer("app", both("app-preset"))
	c.later(decision.DefaultRetention - time.Second)
	c.mustEnd(back, revision.RolledBack, decision.ReasonRetained)
	c.mustHave("app-preset", "app-preset-v2")

	c.later(time.Second)
	c.mustEnd(back, revision.RolledBack, nil)
	c.mustHave("app-preset")
	c.names("app", "app-preset-v2")
	c.mustPlan(decision.Policy{}, "app-preset-v2", decision.Upgrade, decision.ReasonSourceGone)
	c.mustEnd(revision.Request{Name: "app-preset-v2"}, revision.Succeeded, nil)
	c.mustRefer("app", both("app-preset"))
	c.mustEnd(back, revision.RolledBack, nil)
	c.mustHave("app-preset")
}

// TestRolledBackStaysSo until a user asks for it again, as by a run.
func TestRolledBackStaysSo(t *testing.T) {
	c := upgraded(t)
	c.mustEnd(back, revision.RolledBack, decision.ReasonRetained)
	r := c.mustEnd(revision.Request{Name: "app-preset"}, revision.RolledBack, decision.ReasonRolledBack)
	if !strings.Contains(r.Message, c.clock.Now().Format(time.RFC3339)) {
		t.Errorf("%q does not say since when", r.Message)
	}
	c.mustRefer("app", both("app-preset"))
	i := c.mustPlan(decision.Policy{}, "app-preset", decision.Upgrade, decision.ReasonRolledBack)
	if i.Replacement != "app-preset-v2" {
		t.Errorf("the plan does not know what it is rolled back from: %+v", i)
	}
	c.later(decision.DefaultRetention / 2)
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Retained, decision.ReasonRetained)
	c.mustRefer("app", both("app-preset-v2"))
	c.mustPlan(decision.Policy{}, "app-preset", decision.Upgrade, decision.ReasonRetained)
	r = c.mustEnd(back, revision.RolledBack, decision.ReasonRetained)
	if want := c.clock.Now().Add(decision.DefaultRetention); !r.Until.Equal(want) {
		t.Errorf("the second rollback keeps it until %s, want %s: what the first has noted is over", r.Until, want)
	}
}

// TestPendingRollbackIsNotCalledRolledBack: while an object runs, a rollback writes the old
// revision and nothing else. References that still name the new revision are not rolled back,
// whichever client asks.
func TestPendingRollbackIsNotCalledRolledBack(t *testing.T) {
	c := upgraded(t)
	c.setRunning("app", true)
	c.mustEnd(back, revision.Pending, decision.ReasonRunning)
	i := c.mustPlan(decision.Policy{}, "app-preset", decision.Upgrade, decision.ReasonRollbackPending)
	for _, want := range []string{c.clock.Now().Format(time.RFC3339), "Workload app refers to app-preset-v2 at /spec/preset/revision"} {
		if !strings.Contains(i.Message, want) {
			t.Errorf("%q does not say %q", i.Message, want)
		}
	}
	r := c.mustEnd(revision.Request{Name: "app-preset"}, revision.InUse, decision.ReasonRollbackPending) // as an upgrade does that a trigger made
	if r.Replacement != "app-preset-v2" || !strings.Contains(r.Message, "Workload app refers to app-preset-v2") {
		t.Errorf("it does not say what names which revision: %+v", r)
	}
	c.mustRefer("app", both("app-preset-v2"))

	c.setRunning("app", false)
	c.status("app", map[string]string{"status.preset": "app-preset"}) // one of two references is back
	c.mustPlan(decision.Policy{}, "app-preset", decision.Upgrade, decision.ReasonRollbackPending)
	c.mustEnd(back, revision.RolledBack, decision.ReasonRetained) // which is the remedy
	c.mustPlan(decision.Policy{}, "app-preset", decision.Upgrade, decision.ReasonRolledBack)
	c.mustRefer("app", both("app-preset"))
}

// TestInterruptedRollbackIsEndedByARun that a user asks for: it repoints to the new revision, and
// the source goes after its retention.
func TestInterruptedRollbackIsEndedByARun(t *testing.T) {
	c := upgraded(t)
	c.pass(shared.Config(), 1, decision.Policy{}, back)
	i := c.mustPlan(decision.Policy{}, "app-preset", decision.Upgrade, decision.ReasonRollbackPending)
	if !strings.Contains(i.Message, "rollback") {
		t.Errorf("%q", i.Message)
	}
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Retained, decision.ReasonRetained)
	c.later(decision.DefaultRetention)
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Succeeded, nil)
	c.mustHave("app-preset-v2")
}

// sharedReplacement is a namespace in which two sources, named in spec and in status, have one new
// revision.
func sharedReplacement(t *testing.T) *testNamespace {
	t.Helper()
	c := newNamespace(t)
	m := c.workload("app", map[string]string{"spec.preset": "app-first", "status.preset": "app-second"})
	c.store("app-first", "Preset", m, `{"minutes":1}`)
	c.store("app-second", "Preset", m, `{"minutes":1}`)
	c.run(decision.Policy{})
	c.mustHave("app-first", "app-preset-v2", "app-second")
	return c
}

// TestTwoRollbacksShareANewRevision: both end, in one pass, and it goes when both are over.
func TestTwoRollbacksShareANewRevision(t *testing.T) {
	c := sharedReplacement(t)
	both := []revision.Request{{Name: "app-first", Rollback: true}, {Name: "app-second", Rollback: true}}
	rollback := func(reason *godwit.Reason) {
		t.Helper()
		results, err := c.upgrader(shared.Config(), decision.Policy{}).Advance(t.Context(), c.namespace, both)
		c.must(results, err)
		for _, r := range results {
			if r.Phase != revision.RolledBack || r.Reason != reason {
				t.Errorf("%s is %s (%s: %s), want RolledBack (%s)", r.Name, r.Phase, r.Reason, r.Message, reason)
			}
		}
		c.must(nil, c.unresolved())
	}
	rollback(decision.ReasonRetained)
	c.mustHave("app-first", "app-preset-v2", "app-second")
	for path, to := range c.refers("app") {
		if to == "app-preset-v2" {
			t.Errorf("%s still names the new revision", path)
		}
	}
	c.later(decision.DefaultRetention)
	rollback(nil)
	c.mustHave("app-first", "app-second")
}

// TestRollbackLeavesWhatTheOtherSourceNeeds: where one of two sources is rolled back, the
// new revision is kept for late references to the other.
func TestRollbackLeavesWhatTheOtherSourceNeeds(t *testing.T) {
	c := sharedReplacement(t)
	first := revision.Request{Name: "app-first", Rollback: true}
	r := c.mustEnd(first, revision.RolledBack, decision.ReasonKept)
	if !strings.Contains(r.Message, "app-second") {
		t.Errorf("%q does not say what needs it", r.Message)
	}
	c.later(2 * decision.DefaultRetention)
	c.mustEnd(revision.Request{Name: "app-second"}, revision.Succeeded, nil)
	c.mustEnd(first, revision.RolledBack, decision.ReasonKept)
	c.mustHave("app-first", "app-preset-v2")
	c.status("app", map[string]string{"status.preset": "app-second"}) // as a restore brings it back
	c.mustEnd(revision.Request{Name: "app-second"}, revision.Succeeded, nil)
	c.must(nil, c.unresolved())
}

// TestEveryWriteOfARollbackMayGoWrong: a fault befalls one write after the other, in the
// rollback and in the removal that follows the retention, and the next one continues. After
// every single write each reference leads to a revision that can be read.
func TestEveryWriteOfARollbackMayGoWrong(t *testing.T) {
	for name, one := range fault.All() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				c := newNamespace(t)
				c.app()
				c.run(decision.Policy{})
				var wrong error
				w := &fault.Transport{At: at, Fault: one, After: func(req *http.Request) {
					if err := c.unresolved(); err != nil && wrong == nil {
						wrong = fmt.Errorf("after %s %s: %w", req.Method, req.URL.Path, err)
					}
				}}
				both := []revision.Request{{Name: "app-preset", Rollback: true}, {Name: "app-profile", Rollback: true}}
				pass := func(w *fault.Transport) {
					u := c.upgrader(w.Config(shared.Config()), decision.Policy{})
					w.Run(t.Context(), func(ctx context.Context) { _, _ = u.Advance(ctx, c.namespace, both) })
				}
				pass(w)
				pass(&fault.Transport{}) // the next client, undisturbed
				c.later(decision.DefaultRetention)
				pass(w)
				pass(&fault.Transport{})

				if wrong != nil {
					t.Errorf("write %d: %v", at, wrong)
				}
				if got := c.revisions(); !slices.Equal(got, []string{"app-preset", "app-profile"}) {
					t.Errorf("write %d of %q: revisions %v in the end", at, w.Writes(), got)
				}
				c.mustRefer("app", map[string]string{"spec.preset": "app-preset", "spec.profile": "app-profile", "status.preset": "app-preset", "status.profile": "app-profile"})
				if at >= len(w.Writes()) {
					t.Logf("%d writes: %q", at, w.Writes())
					return
				}
			}
		})
	}
}
