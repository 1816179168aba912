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

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/test/fault"
)

var back = revision.Request{Name: "soup-recipe", Rollback: true}

// upgraded is a namespace with one meal, whose recipe is upgraded and retained.
func upgraded(t *testing.T) *corner {
	t.Helper()
	c := newCorner(t)
	c.stash("soup-recipe", "Recipe", c.meal("soup", both("soup-recipe")), `{"minutes":1}`)
	c.run(revision.Policy{})
	return c
}

func (c *corner) mustEnd(w revision.Request, want revision.Phase, reason string) revision.Result {
	c.t.Helper()
	r := c.pass(shared.Config(), 0, revision.Policy{}, w)
	if r.Phase != want || r.Reason != reason {
		c.t.Errorf("%s is %s (%s: %s), want %s (%s)", w.Name, r.Phase, r.Reason, r.Message, want, reason)
	}
	return r
}

func (c *corner) mustHave(want ...string) {
	c.t.Helper()
	if got := c.revisions(); !slices.Equal(got, want) {
		c.t.Errorf("revisions %v, want %v", got, want)
	}
}

// names has a meal's specification name a revision.
func (c *corner) names(meal, revision string) {
	c.t.Helper()
	c.change(meal, "", func(o map[string]any) {
		c.must(nil, unstructured.SetNestedField(o, revision, "spec", "recipe", "revision"))
	})
}

// TestRollbackWritesTheSourceFirst, so that a removal which is under way conflicts, and
// one that comes after an interrupted rollback does not happen.
func TestRollbackWritesTheSourceFirst(t *testing.T) {
	c := upgraded(t)
	before, err := c.core.AppsV1().ControllerRevisions(c.namespace).Get(t.Context(), "soup-recipe", metav1.GetOptions{})
	c.must(before, err)
	w := &fault.Transport{At: 1, Fault: fault.All()["killed before the write"]}
	w.Run(t.Context(), func(ctx context.Context) {
		_, _ = c.upgrader(w.Config(shared.Config()), revision.Policy{}).Advance(ctx, c.namespace, []revision.Request{back})
	})
	if first := w.Writes()[0]; !strings.HasSuffix(first, "/controllerrevisions/soup-recipe") {
		t.Errorf("the first write is %s", first)
	}
	err = c.core.AppsV1().ControllerRevisions(c.namespace).Delete(t.Context(), "soup-recipe", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &before.UID, ResourceVersion: &before.ResourceVersion},
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("a removal that was under way: %v", err)
	}
	c.later(2 * revision.DefaultRetention)
	c.pass(shared.Config(), 0, revision.Policy{}, revision.Request{Name: "soup-recipe"}) // as a trigger does
	c.mustHave("soup-recipe", "soup-recipe-v2")
	c.mustEnd(back, revision.RolledBack, revision.ReasonRetained)
	c.mustRefer("soup", both("soup-recipe"))
}

// TestRollbackIsBeatenByTheRemoval: the removal was faster, and there is nothing
// to roll back to.
func TestRollbackIsBeatenByTheRemoval(t *testing.T) {
	c := upgraded(t)
	w := &fault.Transport{Before: func(n int) {
		if n == 0 {
			c.must(nil, c.core.AppsV1().ControllerRevisions(c.namespace).Delete(t.Context(), "soup-recipe", metav1.DeleteOptions{}))
		}
	}}
	results, err := c.upgrader(w.Config(shared.Config()), revision.Policy{}).Advance(t.Context(), c.namespace, []revision.Request{back})
	c.must(results, err)
	if r := results[0]; r.Phase != revision.Failed || r.Reason != revision.ReasonIrreversible {
		t.Errorf("%s (%s: %s)", r.Phase, r.Reason, r.Message)
	}
	c.mustRefer("soup", both("soup-recipe-v2"))
	c.must(nil, c.unresolved())
}

// TestRollbackKeepsTheNewRevision for the retention, and whoever names it late is led back:
// while it is there, and when it is gone.
func TestRollbackKeepsTheNewRevision(t *testing.T) {
	c := upgraded(t)
	r := c.mustEnd(back, revision.RolledBack, revision.ReasonRetained)
	if want := c.clock.Now().Add(revision.DefaultRetention); !r.Until.Equal(want) {
		t.Errorf("it is kept until %s, want %s", r.Until, want)
	}
	c.mustRefer("soup", both("soup-recipe"))
	c.mustHave("soup-recipe", "soup-recipe-v2")

	c.later(revision.DefaultRetention)
	c.names("soup", "soup-recipe-v2")
	c.mustEnd(back, revision.RolledBack, revision.ReasonRetained) // led back again, and counted from now
	c.mustRefer("soup", both("soup-recipe"))
	c.later(revision.DefaultRetention - time.Second)
	c.mustEnd(back, revision.RolledBack, revision.ReasonRetained)
	c.mustHave("soup-recipe", "soup-recipe-v2")

	c.later(time.Second)
	c.mustEnd(back, revision.RolledBack, "")
	c.mustHave("soup-recipe")
	c.names("soup", "soup-recipe-v2")
	c.mustPlan(revision.Policy{}, "soup-recipe-v2", revision.Upgrade, revision.ReasonSourceGone)
	c.mustEnd(revision.Request{Name: "soup-recipe-v2"}, revision.Succeeded, "")
	c.mustRefer("soup", both("soup-recipe"))
	c.mustEnd(back, revision.RolledBack, "")
	c.mustHave("soup-recipe")
}

// TestRolledBackStaysSo until somebody asks for it again, as by a run.
func TestRolledBackStaysSo(t *testing.T) {
	c := upgraded(t)
	c.mustEnd(back, revision.RolledBack, revision.ReasonRetained)
	r := c.mustEnd(revision.Request{Name: "soup-recipe"}, revision.RolledBack, "RolledBack")
	if !strings.Contains(r.Message, c.clock.Now().Format(time.RFC3339)) {
		t.Errorf("%q does not say since when", r.Message)
	}
	c.mustRefer("soup", both("soup-recipe"))
	i := c.mustPlan(revision.Policy{}, "soup-recipe", revision.Upgrade, "RolledBack")
	if i.Replacement != "soup-recipe-v2" {
		t.Errorf("the plan does not know what it is rolled back from: %+v", i)
	}
	c.later(revision.DefaultRetention / 2)
	c.mustBe(c.run(revision.Policy{}), "soup-recipe", revision.Retained, revision.ReasonRetained)
	c.mustRefer("soup", both("soup-recipe-v2"))
	c.mustPlan(revision.Policy{}, "soup-recipe", revision.Upgrade, revision.ReasonRetained)
	r = c.mustEnd(back, revision.RolledBack, revision.ReasonRetained)
	if want := c.clock.Now().Add(revision.DefaultRetention); !r.Until.Equal(want) {
		t.Errorf("the second rollback keeps it until %s, want %s: what the first has noted is over", r.Until, want)
	}
}

// TestInterruptedRollbackIsEndedByARun that somebody asks for: it leads forward again, and
// the source goes after its retention.
func TestInterruptedRollbackIsEndedByARun(t *testing.T) {
	c := upgraded(t)
	c.pass(shared.Config(), 1, revision.Policy{}, back)
	i := c.mustPlan(revision.Policy{}, "soup-recipe", revision.Upgrade, "RolledBack")
	if !strings.Contains(i.Message, "rolled back") {
		t.Errorf("%q", i.Message)
	}
	c.mustBe(c.run(revision.Policy{}), "soup-recipe", revision.Retained, revision.ReasonRetained)
	c.later(revision.DefaultRetention)
	c.mustBe(c.run(revision.Policy{}), "soup-recipe", revision.Succeeded, "")
	c.mustHave("soup-recipe-v2")
}

// sharedSuccessor is a namespace in which two sources, named in spec and in status, have one new
// revision.
func sharedSuccessor(t *testing.T) *corner {
	t.Helper()
	c := newCorner(t)
	m := c.meal("soup", map[string]string{"spec.recipe": "soup-first", "status.recipe": "soup-second"})
	c.stash("soup-first", "Recipe", m, `{"minutes":1}`)
	c.stash("soup-second", "Recipe", m, `{"minutes":1}`)
	c.run(revision.Policy{})
	c.mustHave("soup-first", "soup-recipe-v2", "soup-second")
	return c
}

// TestTwoRollbacksShareANewRevision: both end, in one pass, and it goes when both are over.
func TestTwoRollbacksShareANewRevision(t *testing.T) {
	c := sharedSuccessor(t)
	both := []revision.Request{{Name: "soup-first", Rollback: true}, {Name: "soup-second", Rollback: true}}
	rollback := func(reason string) {
		t.Helper()
		results, err := c.upgrader(shared.Config(), revision.Policy{}).Advance(t.Context(), c.namespace, both)
		c.must(results, err)
		for _, r := range results {
			if r.Phase != revision.RolledBack || r.Reason != reason {
				t.Errorf("%s is %s (%s: %s), want RolledBack (%s)", r.Name, r.Phase, r.Reason, r.Message, reason)
			}
		}
		c.must(nil, c.unresolved())
	}
	rollback(revision.ReasonRetained)
	c.mustHave("soup-first", "soup-recipe-v2", "soup-second")
	for path, to := range c.refers("soup") {
		if to == "soup-recipe-v2" {
			t.Errorf("%s still names the new revision", path)
		}
	}
	c.later(revision.DefaultRetention)
	rollback("")
	c.mustHave("soup-first", "soup-second")
}

// TestRollbackLeavesWhatTheOtherSourceNeeds: where one of two sources is rolled back, the
// new revision is kept for late references to the other.
func TestRollbackLeavesWhatTheOtherSourceNeeds(t *testing.T) {
	c := sharedSuccessor(t)
	first := revision.Request{Name: "soup-first", Rollback: true}
	r := c.mustEnd(first, revision.RolledBack, revision.ReasonKept)
	if !strings.Contains(r.Message, "soup-second") {
		t.Errorf("%q does not say what needs it", r.Message)
	}
	c.later(2 * revision.DefaultRetention)
	c.mustEnd(revision.Request{Name: "soup-second"}, revision.Succeeded, "")
	c.mustEnd(first, revision.RolledBack, revision.ReasonKept)
	c.mustHave("soup-first", "soup-recipe-v2")
	c.status("soup", map[string]string{"status.recipe": "soup-second"}) // as a restore brings it back
	c.mustEnd(revision.Request{Name: "soup-second"}, revision.Succeeded, "")
	c.must(nil, c.unresolved())
}

// TestEveryWriteOfARollbackMayGoWrong: a fault befalls one write after the other, in the
// rollback and in the removal that follows the retention, and the next one goes on. After
// every single write each reference leads to a revision that can be read.
func TestEveryWriteOfARollbackMayGoWrong(t *testing.T) {
	for name, one := range fault.All() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				c := newCorner(t)
				c.soup()
				c.run(revision.Policy{})
				var wrong error
				w := &fault.Transport{At: at, Fault: one, After: func(req *http.Request) {
					if err := c.unresolved(); err != nil && wrong == nil {
						wrong = fmt.Errorf("after %s %s: %w", req.Method, req.URL.Path, err)
					}
				}}
				both := []revision.Request{{Name: "soup-recipe", Rollback: true}, {Name: "soup-sauce", Rollback: true}}
				pass := func(w *fault.Transport) {
					u := c.upgrader(w.Config(shared.Config()), revision.Policy{})
					w.Run(t.Context(), func(ctx context.Context) { _, _ = u.Advance(ctx, c.namespace, both) })
				}
				pass(w)
				pass(&fault.Transport{}) // whoever comes next, and is not disturbed
				c.later(revision.DefaultRetention)
				pass(w)
				pass(&fault.Transport{})

				if wrong != nil {
					t.Errorf("write %d: %v", at, wrong)
				}
				if got := c.revisions(); !slices.Equal(got, []string{"soup-recipe", "soup-sauce"}) {
					t.Errorf("write %d of %q: revisions %v in the end", at, w.Writes(), got)
				}
				c.mustRefer("soup", map[string]string{"spec.recipe": "soup-recipe", "spec.sauce": "soup-sauce", "status.recipe": "soup-recipe", "status.sauce": "soup-sauce"})
				if at >= len(w.Writes()) {
					t.Logf("%d writes: %q", at, w.Writes())
					return
				}
			}
		})
	}
}
