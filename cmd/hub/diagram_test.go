package hub

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestDiagram: the sequence diagram of the reference has the actions of each phase in the order of
// the turns. Its rollback is that of the last stage, which includes the others.
func TestDiagram(t *testing.T) {
	want := map[string][]string{}
	known := map[string]bool{}
	add := func(phase api.Phase, turns []turn) {
		for _, turn := range turns {
			for _, task := range turn {
				for _, action := range task.actions {
					want[string(phase)] = append(want[string(phase)], string(task.party)+" "+string(action))
					known[string(action)] = true
				}
			}
		}
	}
	for phase, turns := range together {
		add(phase, turns)
	}
	add(api.PhaseRegistering, moving)
	add(api.PhaseRollbacking, returning[api.PhaseRegistering])
	add(api.PhaseCleaning, closing)

	text, err := os.ReadFile("../../docs/reference/hub-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, diagram, _ := strings.Cut(string(text), "```mermaid")
	diagram, _, _ = strings.Cut(diagram, "```")
	note, arrow, word := regexp.MustCompile(`Note over [\w,]+: (\w+)`), regexp.MustCompile(`Manager->>(\w+): (.*)`), regexp.MustCompile(`[A-Z]\w+`)
	got, phase := map[string][]string{}, ""
	for line := range strings.Lines(diagram) {
		if m := note.FindStringSubmatch(line); m != nil {
			phase = m[1]
		}
		m := arrow.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, " again") {
			continue
		}
		for _, action := range word.FindAllString(m[2], -1) {
			if known[action] {
				got[phase] = append(got[phase], strings.ToLower(m[1])+" "+action)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions of the diagram (-turns +diagram):\n%s", diff)
	}
}
