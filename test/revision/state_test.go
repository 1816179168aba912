package revision_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/format/formattest"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// lineages are annotations of a source and of its replacement.
type lineages struct{ Source, Replacement map[string]string }

func lineagesOf(t *testing.T, text string) (l lineages) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// annotate replaces the annotations of a revision.
func (c *testNamespace) annotate(name string, annotations map[string]string) {
	c.t.Helper()
	r, err := c.core.AppsV1().ControllerRevisions(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(r, err)
	r.Annotations = annotations
	c.must(c.core.AppsV1().ControllerRevisions(c.namespace).Update(c.t.Context(), r, metav1.UpdateOptions{}))
}

func (c *testNamespace) annotations(name string) map[string]string {
	c.t.Helper()
	r, err := c.core.AppsV1().ControllerRevisions(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(r, err)
	return r.Annotations
}

// TestLineageOfOtherReleases: an upgrade writes the annotations of v0.1.0 and continues from them, and what a newer release has
// annotated is left alone: by a plan, a run, a rollback and the end of the retention.
func TestLineageOfOtherReleases(t *testing.T) {
	c := newNamespace(t)
	source := c.store("app-preset", "Preset", c.workload("app", both("app-preset")), `{"minutes":1}`)
	oldest := lineagesOf(t, strings.ReplaceAll(formattest.Frozen(t, "lineage.json"), "00000000-0000-4000-8000-000000000001", string(source.UID)))
	oldest.Source[decision.UnreferencedAnnotation] = c.clock.Now().UTC().Format("2006-01-02T15:04:05Z07:00")
	c.mustBe(c.run(decision.Policy{}), "app-preset", revision.Retained, decision.ReasonRetained)
	if diff := cmp.Diff(oldest, lineages{c.annotations("app-preset"), c.annotations("app-preset-v2")}); diff != "" {
		t.Errorf("annotations (-%s +now):\n%s", formattest.Oldest, diff)
	}
	newer := lineagesOf(t, formattest.Newer(t, "lineage.json"))
	c.annotate("app-preset", newer.Source)
	c.annotate("app-preset-v2", newer.Replacement)
	before := c.revisions()
	i := c.mustPlan(decision.Policy{}, "app-preset", decision.Blocked, decision.ReasonNewerFormat)
	if want := "controllerrevision " + c.namespace + `/app-preset has format "2"`; !strings.Contains(i.Message, want) {
		t.Errorf("%s does not say %s", i.Message, want)
	}
	c.later(2 * decision.DefaultRetention)
	for _, w := range []revision.Request{{Name: "app-preset"}, {Name: "app-preset", Rollback: true}, {Name: "app-preset-v2"}} {
		if r := c.pass(shared.Config(), 0, decision.Policy{}, w); r.Phase != revision.Failed || r.Reason != decision.ReasonNewerFormat {
			t.Errorf("%+v is %s, %s: %s", w, r.Phase, r.Reason, r.Message)
		}
	}
	if after := c.revisions(); !slices.Equal(before, after) || !maps.Equal(c.annotations("app-preset"), newer.Source) {
		t.Errorf("revisions %v, want %v, with annotations %v", after, before, c.annotations("app-preset"))
	}
	c.mustRefer("app", both("app-preset-v2"))

	c.annotate("app-preset", oldest.Source)
	c.annotate("app-preset-v2", oldest.Replacement)
	if r := c.pass(shared.Config(), 0, decision.Policy{}, revision.Request{Name: "app-preset"}); r.Phase != revision.Succeeded || slices.Contains(c.revisions(), "app-preset") {
		t.Errorf("after the retention the upgrade of %s is %s, %s: %s", formattest.Oldest, r.Phase, r.Reason, r.Message)
	}
}
