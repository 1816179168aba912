package revision

import (
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TestProgressNeverRunsBackwards: attempts are repeated, a second pass tells of the same
// upgrades, and what was counted stays counted.
func TestProgressNeverRunsBackwards(t *testing.T) {
	at := func(name string, p revision.Phase, reason *godwit.Reason) revision.Result {
		return revision.Result{Item: decision.Item{Namespace: "shop", Name: name, Reason: reason}, Phase: p}
	}
	s := &steps{console: &frame.Console{}}
	s.begin("advancing", 0)
	s.total = 2
	for i, step := range []struct {
		result revision.Result
		want   string
	}{
		{at("a", revision.Converted, decision.ReasonUnanswered), "0 of 2 upgrades, 1 failed"},
		{at("a", revision.Created, nil), "0 of 2 upgrades, 1 made"},
		{at("b", revision.Created, nil), "0 of 2 upgrades, 2 made"},
		{at("a", revision.Repointed, decision.ReasonUnanswered), "0 of 2 upgrades, 2 made, 1 failed"},
		{at("a", revision.Retained, decision.ReasonRetained), "1 of 2 upgrades, 1 made"},
		{at("a", revision.Retained, decision.ReasonRetained), "1 of 2 upgrades, 1 made"},
		{at("b", revision.Failed, decision.ReasonRefused), "2 of 2 upgrades, 1 failed"},
		{at("a", revision.Succeeded, nil), "2 of 2 upgrades, 1 failed"},
		{at("c", revision.Created, nil), "2 of 3 upgrades, 1 made, 1 failed"},
	} {
		if s.update(step.result); s.text() != step.want {
			t.Errorf("step %d: %q, want %q", i, s.text(), step.want)
		}
	}
}
