package fleet

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/format/formattest"
)

func annotated(annotations map[string]string) managed.Resource {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{}}}}
	o.SetNamespace("default")
	o.SetName("one")
	o.SetAnnotations(annotations)
	return managed.Of(o)
}

// TestJournalOfOtherReleases: the form of v0.1.0 is read and written, and a newer one is left alone, whatever is asked for.
func TestJournalOfOtherReleases(t *testing.T) {
	oldest := formattest.Frozen(t, "renaming.json")
	want := formattest.Same[storedJournal](t, oldest, ".Policies", ".Second").journal
	got, err := readJournal(annotated(map[string]string{AnnotationJournal: oldest}))
	if diff := cmp.Diff(&want, got); diff != "" || err != nil {
		t.Errorf("%v: (-want +got):\n%s", err, diff)
	}
	for name, annotations := range map[string]map[string]string{
		"journal":    {AnnotationJournal: formattest.Newer(t, "renaming.json"), managed.AnnotationName: "old "},
		"annotation": {format.Annotation: "2", managed.AnnotationName: "old "},
	} {
		m := annotated(annotations)
		i := PlanFor(Scan{Facts: []Fact{factOf(Kind{}, m.Unstructured, Proposal{Name: "old", Form: "space"}, Identity{}, nil)}})[0]
		checkFix(t, i)
		if i.Action != Skip || i.Reason != ReasonNewerFormat || !strings.Contains(i.Message, "default/one has format") {
			t.Errorf("%s: plan %s, %s: %s", name, i.Action, i.Reason, i.Message)
		}
		j, err := readJournal(m)
		s := situation{exists: true, journal: j, journalErr: err, name: m.ExternalName(), current: "old ", proposed: "old", paused: true}
		for what, decide := range map[string]func() (decision, *managed.Changes){
			"apply":    func() (decision, *managed.Changes) { return decideStep(s), nil },
			"rollback": func() (decision, *managed.Changes) { return decideRollback(s) },
			"restore": func() (decision, *managed.Changes) {
				return decideRestore(s, RestoreOptions{Overwrite: true, Unpause: true})
			},
		} {
			d, c := decide()
			if d.reason != ReasonNewerFormat || d.step != stepEnd || !c.IsEmpty() {
				t.Errorf("%s: %s decides on %+v and writes %v", name, what, d, c)
			}
		}
	}
}

func TestNameBookOfOtherReleases(t *testing.T) {
	oldest := formattest.Frozen(t, "namebook.json")
	want := formattest.Same[SavedNames](t, oldest, ".Names[0].Replacement")
	got, err := ReadSavedNames([]byte(oldest))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: (-want +got):\n%s", err, diff)
	}
	if text, err := json.Marshal(NewSavedNames(want.SavedAt, want.Names)); string(text) != oldest {
		t.Errorf("%v: written otherwise:\n%s", err, text)
	}
	if b, err := ReadSavedNames([]byte(formattest.Newer(t, "namebook.json"))); err == nil || len(b.Names) > 0 {
		t.Errorf("a document of another version is read as %+v", b)
	}
}
