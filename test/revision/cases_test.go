package revision_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// both refers to one preset in specification and status.
func both(name string) map[string]string {
	return map[string]string{"spec.preset": name, "status.preset": name}
}

func (c *testNamespace) mustBe(results map[string]revision.Result, name string, want revision.Phase, reason *godwit.Reason) {
	c.t.Helper()
	r, ok := results[name]
	if !ok {
		c.t.Fatalf("nothing became of %s: %v", name, results)
	}
	if r.Phase != want || r.Reason != reason {
		c.t.Errorf("%s is %s (%s: %s), want %s (%s)", name, r.Phase, r.Reason, r.Message, want, reason)
	}
}

func (c *testNamespace) mustPlan(p decision.Policy, name string, want decision.Action, reason *godwit.Reason) decision.Item {
	c.t.Helper()
	i, ok := c.plan(p)[name]
	if !ok {
		c.t.Fatalf("the plan has no %s", name)
	}
	if i.Action != want || i.Reason != reason {
		c.t.Errorf("the plan for %s is %s (%s: %s), want %s (%s)", name, i.Action, i.Reason, i.Message, want, reason)
	}
	return i
}

func (c *testNamespace) mustRefer(workload string, want map[string]string) {
	c.t.Helper()
	got := c.refers(workload)
	for path, name := range want {
		if key := "/" + strings.ReplaceAll(path, ".", "/") + "/revision"; got[key] != name {
			c.t.Errorf("%s of %s is %q, want %q", key, workload, got[key], name)
		}
	}
	if len(got) != len(want) {
		c.t.Errorf("%s refers to %v, want %v", workload, got, want)
	}
}

func (c *testNamespace) later(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

func TestStatusAloneIsWritten(t *testing.T) {
	c := newNamespace(t)
	only := map[string]string{"status.preset": "app-preset"}
	m := c.workload("app", only)
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	generation := m.GetGeneration()
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Retained, decision.ReasonRetained)
	c.mustRefer("app", map[string]string{"status.preset": "app-preset-v2"})
	m, err := c.dynamic.Resource(workloads).Namespace(c.namespace).Get(t.Context(), "app", metav1.GetOptions{})
	c.must(m, err)
	if m.GetGeneration() != generation {
		t.Error("a specification was written that says nothing")
	}
}

// TestResultHasTheHashOfItsSource: a user with a backup can prove which stored data was converted. The result of a source
// that is gone has no hash.
func TestResultHasTheHashOfItsSource(t *testing.T) {
	c := newNamespace(t)
	source := c.store("app-preset", "Preset", c.workload("app", both("app-preset")), `{"minutes":1}`)
	const old = "2a27cc1847947d9fb560ffb7bafea5eb5e1858cc52d39991945a206a530d69f1" // by jq and sha256sum
	r := c.run(decision.Policy{})["app-preset"]
	if r.UID != source.UID || r.ResourceVersion != source.ResourceVersion || r.Hash != old {
		t.Errorf("the source is %s at %s, hash %s", r.UID, r.ResourceVersion, r.Hash)
	}
	replacement, err := c.core.AppsV1().ControllerRevisions(c.namespace).Get(t.Context(), "app-preset-v2", metav1.GetOptions{})
	c.must(replacement, err)
	if r.ReplacementUID != replacement.UID || r.ReplacementHash != decision.Hash(replacement) || r.ReplacementHash == r.Hash {
		t.Errorf("the replacement is %s, hash %s", r.ReplacementUID, r.ReplacementHash)
	}
	c.later(decision.DefaultRetention)
	c.run(decision.Policy{})
	r = c.pass(shared.Config(), 0, decision.Policy{}, revision.Request{Name: "app-preset", UID: source.UID})
	if r.Phase != revision.Succeeded || r.ResourceVersion != "" || r.Hash != "" || r.ReplacementUID != replacement.UID {
		t.Errorf("it is gone: %+v", r)
	}
}

// TestReplacementWithOtherLabelsIsTheSame: another client changed them. Of two replacements
// of one source, no client would know which is meant.
func TestReplacementWithOtherLabelsIsTheSame(t *testing.T) {
	c := newNamespace(t)
	c.store("app-preset", "Preset", c.workload("app", both("app-preset")), `{"minutes":1}`)
	c.run(decision.Policy{})
	c.mislabel("app-preset-v2")
	c.started(c.setRunning("app", true), "app-preset")
	before := c.revisions()
	r := c.pass(shared.Config(), 0, decision.Policy{OnRunning: decision.Hold}, revision.Request{Name: "app-preset"})
	if after := c.revisions(); !slices.Equal(after, before) || r.Replacement != "app-preset-v2" {
		t.Errorf("it leads to %q, and there are %v, where before there were %v", r.Replacement, after, before)
	}
}

// TestReferencesSayWhetherTheirRevisionIsOld: each reference of a plan names an old revision or one at the target version.
func TestReferencesSayWhetherTheirRevisionIsOld(t *testing.T) {
	c := newNamespace(t)
	c.store("app-preset", "Preset", c.workload("app", both("app-preset")), `{"minutes":1}`)
	must := func(when string, places []decision.ReferenceStatus, want ...string) {
		t.Helper()
		var got []string
		for _, p := range places {
			got = append(got, p.State+" "+p.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	spec, status := " /spec/preset/revision", " /status/preset/revision"
	must("before", c.plan(decision.Policy{})["app-preset"].References, "Old"+spec, "Old"+status)
	must("led", c.run(decision.Policy{})["app-preset"].References, "New"+spec, "New"+status)
	must("of the replacement", c.plan(decision.Policy{})["app-preset-v2"].References, "New"+spec, "New"+status)
	c.mislabel("app-preset-v2")
	must("with other labels", c.plan(decision.Policy{})["app-preset-v2"].References, "New"+spec, "New"+status)
	c.started(c.setRunning("app", true), "app-preset")
	must("held", c.run(decision.Policy{OnRunning: decision.Hold})["app-preset"].References, "Fixed /data/started/preset", "New"+spec, "New"+status)
	c.setRunning("app", false)
	back := c.pass(shared.Config(), 0, decision.Policy{}, revision.Request{Name: "app-preset", Rollback: true})
	must("rolled back", back.References, "Old"+spec, "Old"+status)
}

func TestSharedRevisionIsLeftByBoth(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.workload("db", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Retained, decision.ReasonRetained)
	c.mustRefer("app", both("app-preset-v2"))
	c.mustRefer("db", both("app-preset-v2"))
}

func TestRunningReferrerIsLeftAlone(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.setRunning("app", true)
	i := c.mustPlan(decision.Policy{}, "app-preset", decision.Deferred, decision.ReasonRunning)
	if !strings.Contains(i.Message, "Workload app") {
		t.Errorf("%q does not say what runs", i.Message)
	}
	if r := c.run(decision.Policy{})["app-preset"]; r.Phase != "" || r.Action != decision.Deferred || len(c.revisions()) != 1 {
		t.Errorf("%v, revisions %v", r, c.revisions())
	}
	c.setRunning("app", false)
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Retained, decision.ReasonRetained)
}

func (c *testNamespace) setRunning(workload string, running bool) *unstructured.Unstructured {
	c.t.Helper()
	return c.change(workload, "status", func(o map[string]any) { c.must(nil, unstructured.SetNestedField(o, running, "status", "running")) })
}

// started is what a workload that runs was started with: a revision that says so in
// data that no client can change.
func (c *testNamespace) started(workload *unstructured.Unstructured, preset string) {
	c.t.Helper()
	r := c.store("start-"+workload.GetName(), "Foreign", workload, `{}`)
	c.must(nil, c.core.AppsV1().ControllerRevisions(c.namespace).Delete(c.t.Context(), r.Name, metav1.DeleteOptions{}))
	r.ResourceVersion, r.UID = "", ""
	r.Data.Raw = []byte(`{"started":{"preset":"` + preset + `"}}`)
	c.must(c.core.AppsV1().ControllerRevisions(c.namespace).Create(c.t.Context(), r, metav1.CreateOptions{}))
}

// TestHoldKeepsTheSourceUntilNothingRuns: what a running workload was started with
// can't be written, and goes with its end.
func TestHoldKeepsTheSourceUntilNothingRuns(t *testing.T) {
	c := newNamespace(t)
	hold := decision.Policy{OnRunning: decision.Hold}
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.setRunning("app", true)
	c.started(m, "app-preset")
	results := c.run(hold)
	c.mustBe(results, "app-preset", revision.InUse, decision.ReasonReferenced)
	if !strings.Contains(results["app-preset"].Message, "start-app") {
		t.Errorf("%q does not say what holds it", results["app-preset"].Message)
	}
	c.mustRefer("app", both("app-preset-v2"))
	c.later(2 * decision.DefaultRetention)
	c.mustBe(c.run(hold), "app-preset", revision.InUse, decision.ReasonReferenced)
	c.setRunning("app", false)
	c.mustBe(c.run(hold), "app-preset", revision.Retained, decision.ReasonRetained)
	c.later(2 * decision.DefaultRetention)
	c.mustBe(c.run(hold), "app-preset", revision.Succeeded, nil)
	if got := c.revisions(); !slices.Equal(got, []string{"app-preset-v2", "start-app"}) {
		t.Errorf("revisions %v", got)
	}
}

// TestRevertedReferenceKeepsTheSource, and the time it is kept begins anew.
func TestRevertedReferenceKeepsTheSource(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.run(decision.Policy{})
	c.later(2 * decision.DefaultRetention)
	c.change("app", "", func(o map[string]any) {
		c.must(nil, unstructured.SetNestedField(o, "app-preset", "spec", "preset", "revision"))
	})
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Retained, decision.ReasonRetained) // led again, and counted from now
	c.later(decision.DefaultRetention - time.Second)
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Retained, decision.ReasonRetained)
	if len(c.revisions()) != 2 {
		t.Errorf("revisions %v", c.revisions())
	}
}

func TestRollback(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	source := c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.run(decision.Policy{})
	back := func() revision.Result {
		results, err := c.upgrader(shared.Config(), decision.Policy{}).Advance(t.Context(), c.namespace, []revision.Request{{Name: "app-preset", UID: source.UID, Rollback: true}})
		c.must(results, err)
		return results[0]
	}
	if r := back(); r.Phase != revision.RolledBack {
		t.Errorf("%s: %s", r.Phase, r.Message)
	}
	c.mustRefer("app", both("app-preset"))
	c.later(decision.DefaultRetention)
	if r := back(); r.Phase != revision.RolledBack {
		t.Errorf("%s: %s", r.Phase, r.Message)
	}
	if got := c.revisions(); !slices.Equal(got, []string{"app-preset"}) {
		t.Errorf("revisions %v", got)
	}
	c.mustPlan(decision.Policy{}, "app-preset", decision.Upgrade, decision.ReasonRolledBack)
	unknown := c.pass(shared.Config(), 0, decision.Policy{}, revision.Request{Name: "unknown", Rollback: true})
	if unknown.Phase != revision.Failed || unknown.Reason != decision.ReasonSourceGone || len(c.revisions()) != 1 {
		t.Errorf("a name of nothing: %s (%s: %s), revisions %v", unknown.Phase, unknown.Reason, unknown.Message, c.revisions())
	}

	c.run(decision.Policy{})
	c.later(2 * decision.DefaultRetention)
	c.run(decision.Policy{})
	r := back()
	if r.Phase != revision.Failed || r.Reason != decision.ReasonIrreversible || !strings.Contains(r.Message, decision.DefaultRetention.String()) {
		t.Errorf("%s (%s): %s", r.Phase, r.Reason, r.Message)
	}
}

// TestLossesAreRefused unless they are allowed; then they are carried along.
func TestLossesAreRefused(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1,"color":"red"}`)
	i := c.mustPlan(decision.Policy{}, "app-preset", decision.Blocked, decision.ReasonLossy)
	if !slices.Equal(i.Losses, []string{"spec.color"}) {
		t.Errorf("losses %v", i.Losses)
	}
	if c.run(decision.Policy{}); len(c.revisions()) != 1 {
		t.Errorf("revisions %v", c.revisions())
	}
	c.mustBe(c.run(decision.Policy{AllowLosses: true}), "app-preset", revision.Retained, decision.ReasonRetained)
	if spec := c.data("app-preset-v2")["spec"].(map[string]any); spec["color"] != "red" {
		t.Errorf("carried along: %v", spec)
	}
}

// TestRevisionThatCannotBeUpgradedIsNotWritten, and its sibling is upgraded.
func TestRevisionThatCannotBeUpgradedIsNotWritten(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", map[string]string{"spec.preset": "app-preset", "spec.profile": "app-profile"})
	c.store("app-preset", "Preset", m, `"no object"`)
	c.store("app-profile", "Profile", m, `{"minutes":1}`)
	c.mustPlan(decision.Policy{}, "app-preset", decision.Blocked, decision.ReasonUndecodable)
	c.mustBe(c.run(decision.Policy{}), "app-profile", revision.Retained, decision.ReasonRetained)
	c.mustRefer("app", map[string]string{"spec.preset": "app-preset", "spec.profile": "app-profile-v2"})
}

func TestConflictingClaims(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", map[string]string{"spec.preset": "app-preset"})
	c.workload("db", map[string]string{"spec.profile": "app-preset"})
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	i := c.mustPlan(decision.Policy{}, "app-preset", decision.Blocked, decision.ReasonConflictingTypes)
	for _, word := range []string{"app", "db", "Preset", "Profile"} {
		if !strings.Contains(i.Message, word) {
			t.Errorf("%q does not say %s", i.Message, word)
		}
	}
}

func TestTargetThatIsNotServed(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.mustPlan(decision.Policy{Target: "v3"}, "app-preset", decision.Blocked, decision.ReasonTargetNotServed)
}

func TestUnreferencedIsReported(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", nil)
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.mustPlan(decision.Policy{}, "app-preset", decision.Unreferenced, decision.ReasonUnreferenced)
	if c.run(decision.Policy{}); len(c.revisions()) != 1 {
		t.Errorf("revisions %v", c.revisions())
	}
}

func TestRevisionWithoutController(t *testing.T) {
	c := newNamespace(t)
	c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", nil, `{"minutes":1}`)
	if i := c.plan(decision.Policy{})["app-preset"]; i.Action != decision.Blocked {
		t.Errorf("%+v", i)
	}
}

// TestReferenceToNothing is told, and led on where something says that it comes
// from what was there: a restore that brings back an old name.
func TestReferenceToNothing(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.run(decision.Policy{})
	c.later(2 * decision.DefaultRetention)
	c.run(decision.Policy{})
	c.workload("restored", both("app-preset"))
	c.workload("lost", both("unknown"))
	c.mustPlan(decision.Policy{}, "app-preset", decision.Upgrade, decision.ReasonSourceGone)
	c.mustPlan(decision.Policy{}, "unknown", decision.Blocked, decision.ReasonSourceGone)
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Succeeded, nil)
	c.mustRefer("restored", both("app-preset-v2"))
	c.mustRefer("lost", both("unknown"))
}

// TestNameIsTaken by a revision that holds something else, and by one that holds
// the same: the family's own software was faster.
func TestNameIsTaken(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want func(name string) bool
	}{
		"by something else": {`{"duration":"99m"}`, func(name string) bool { return strings.HasPrefix(name, "app-preset-v2-") }},
		"by the same":       {`{"duration":"1m"}`, func(name string) bool { return name == "app-preset-v2" }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newNamespace(t)
			m := c.workload("app", both("app-preset"))
			source := c.store("app-preset", "Preset", m, `{"minutes":1}`)
			taken := &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Name: "app-preset-v2", Labels: map[string]string{versionLabel: "v2"}, OwnerReferences: source.OwnerReferences},
			}
			taken.Data.Raw = []byte(`{"apiVersion":"presets.example.com/v2","kind":"Preset","metadata":{"name":"preset"},"spec":` + test.spec + `}`)
			c.must(c.core.AppsV1().ControllerRevisions(c.namespace).Create(t.Context(), taken, metav1.CreateOptions{}))
			r := c.run(decision.Policy{})["app-preset"]
			if r.Phase != revision.Retained || !test.want(r.Replacement) {
				t.Errorf("%s, replacement %s", r.Phase, r.Replacement)
			}
			c.mustRefer("app", both(r.Replacement))
			if spec := c.data(r.Replacement)["spec"].(map[string]any); spec["duration"] != "1m" {
				t.Errorf("the replacement says %v", spec)
			}
		})
	}
}

func TestDataDecidesAndNotLabels(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.run(decision.Policy{})
	c.mislabel("app-preset-v2")
	c.mustPlan(decision.Policy{}, "app-preset-v2", decision.Relabel, nil)
	c.mustBe(c.run(decision.Policy{}), "app-preset-v2", revision.Succeeded, nil)
	c.mustPlan(decision.Policy{}, "app-preset-v2", decision.UpToDate, nil)
}

// mislabel has a revision say that it is at v1.
func (c *testNamespace) mislabel(name string) {
	c.t.Helper()
	c.must(c.core.AppsV1().ControllerRevisions(c.namespace).Patch(c.t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+versionLabel+`":"v1"}}}`), metav1.PatchOptions{}))
}

func TestRevisionMadeAgainIsAnother(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	results, err := c.upgrader(shared.Config(), decision.Policy{}).Advance(t.Context(), c.namespace, []revision.Request{{Name: "app-preset", UID: "another"}})
	c.must(results, err)
	if r := results[0]; r.Phase != revision.Skipped || r.Reason != decision.ReasonReplaced {
		t.Errorf("%s (%s)", r.Phase, r.Reason)
	}
}

func TestKeptWithoutALimit(t *testing.T) {
	c := newNamespace(t)
	keep := decision.Policy{Retain: true}
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	c.run(keep)
	c.later(1000 * decision.DefaultRetention)
	c.mustBe(c.run(keep), "app-preset", revision.Retained, decision.ReasonKept)
}

func TestInventorySaysWhatCanBeDropped(t *testing.T) {
	c := newNamespace(t)
	m := c.workload("app", both("app-preset"))
	c.store("app-preset", "Preset", m, `{"minutes":1}`)
	u := c.upgrader(shared.Config(), decision.Policy{})
	s, err := u.Inventory(t.Context())
	c.must(s, err)
	if slices.Contains(s.Droppable, "v1") || !slices.ContainsFunc(s.InUse, func(h revision.VersionUse) bool { return h.Version == "v1" && h.Count > 0 && len(h.UsedBy) > 0 }) {
		t.Errorf("%+v", s)
	}
}
