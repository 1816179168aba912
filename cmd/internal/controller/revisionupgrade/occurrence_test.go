package revisionupgrade

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TestOccurrencesOfReasons reads where package revision sets a phase with a reason: the table of
// phases leads to the same condition. Each documented reason has an occurrence.
func TestOccurrencesOfReasons(t *testing.T) {
	declaration := regexp.MustCompile(`(?m)^\t(Reason\w+) = Reasons\.Declare\(godwit\.Reason\{\n\t\tName: +"(\w+)"`)
	set := regexp.MustCompile(`(?:setStatus|keepOld|with)\((?:(\w+), )?(?:decision\.)?(Reason\w+),`)
	source := sourceOf(t, "../../../../revision") + sourceOf(t, "../../../../revision/decision")
	reasons := map[string]*godwit.Reason{}
	for _, m := range declaration.FindAllStringSubmatch(source, -1) {
		reasons[m[1]] = decision.Reasons.Find(m[2])
	}
	reasons["ReasonNewerFormat"] = decision.ReasonNewerFormat // declared by package format
	phases := map[string]revision.Phase{"Blocked": revision.Failed, "Deferred": revision.Converted, "": revision.Retained}
	for _, p := range []revision.Phase{
		revision.Pending, revision.Analyzing, revision.Converted, revision.Created, revision.Repointed, revision.InUse,
		revision.Retained, revision.Succeeded, revision.Skipped, revision.Failed, revision.RolledBack,
	} {
		phases[string(p)] = p
	}
	found := 0
	for _, m := range set.FindAllStringSubmatch(source, -1) {
		phase, known := phases[m[1]]
		if !known {
			continue // an action that leads to no upgrade
		}
		found++
		reason := reasons[m[2]]
		s := summaryOf(&v1alpha1.ControllerRevisionUpgrade{}, revision.Result{Item: decision.Item{Reason: reason}, Phase: phase})
		if want := (status.Occurrence{Condition: string(s.State), EventType: s.EventType()}); !slices.Contains(Occurrences(reason), want) {
			t.Errorf("%s: package revision sets it with the phase %s, and %+v is not among its occurrences %+v", reason, phase, want, Occurrences(reason))
		}
	}
	if found < 40 {
		t.Errorf("found %d places that set a reason, want at least 40", found)
	}
	for _, r := range decision.Reasons.Reasons() {
		if len(Occurrences(r)) == 0 && !slices.Contains([]*godwit.Reason{decision.ReasonRollbackPending, decision.ReasonUnreferenced, decision.ReasonUnreadable}, r) {
			t.Errorf("%s occurs in no condition", r)
		}
	}
}

func sourceOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %s: %v", len(files), folder, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
