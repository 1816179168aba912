package remedy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
)

func TestWays(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   [][]Step
	}{
		"nothing":         {"a problem without a remedy", "", nil},
		"words":           {"only the user knows how", "fix the webhook", [][]Step{{{Text: "fix the webhook"}}}},
		"a command alone": {"the command says it all", "godwit crd run x", [][]Step{{{Command: "godwit crd run x"}}}},
		"a plugin":        {"the program as the user types it", "resume: kubectl godwit crd run x", [][]Step{{{Text: "resume:", Command: "kubectl godwit crd run x"}}}},
		"a pipe":          {"one command", "grant it: godwit rbac | kubectl apply -f -", [][]Step{{{Text: "grant it:", Command: "godwit rbac | kubectl apply -f -"}}}},
		"ways and steps": {
			"the best first", "bring it up; where it is: kubectl get crd x; or if it is gone: godwit crd rescue x; then check again",
			[][]Step{
				{{Text: "bring it up; where it is:", Command: "kubectl get crd x"}},
				{{Text: "if it is gone:", Command: "godwit crd rescue x"}, {Text: "check again"}},
			},
		},
		"a separator in quotes": {
			"a part of the command", `a: kubectl patch x -p '{"a": "b; or c"}' --context="d; then e"; or f`,
			[][]Step{{{Text: "a:", Command: `kubectl patch x -p '{"a": "b; or c"}' --context="d; then e"`}}, {{Text: "f"}}},
		},
		"a command within a sentence": {
			"it is a part of the sentence", "check with `kubectl get --raw /readyz`, then try again",
			[][]Step{{{Text: "check with `kubectl get --raw /readyz`, then try again"}}},
		},
		"a separator in backquotes": {
			"it is a part of the name", "put `a; or b: kubectl x` into the file; or c", [][]Step{{{Text: "put `a; or b: kubectl x` into the file"}}, {{Text: "c"}}},
		},
		"a colon in words": {"what follows is not a command", "choose one: a, b", [][]Step{{{Text: "choose one: a, b"}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Ways(c.text)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestWaysAreThoseOfTheFix joins a fix of any number of ways, steps and actions, and takes it apart again.
func TestWaysAreThoseOfTheFix(t *testing.T) {
	w := Writer{Program: "godwit"}
	steps := []godwit.FixStep{
		{Do: "a"},
		{Do: "do b; where it is", Actions: []godwit.Action{godwit.RunMigration{CRD: "x", AcceptLosses: "spec.a b"}, godwit.GrantPermission{Verb: "get", Resource: "secrets"}}},
		{Do: "c (can't be undone)", Actions: []godwit.Action{godwit.Patch{Object: godwit.Object{Resource: "crd", Name: "x"}, Type: godwit.PatchJSON, Body: `[{"value": "it's; or not; then \"b\""}]`}}},
	}
	shown := make([]Step, len(steps))
	for i, one := range steps {
		shown[i] = Step{Text: one.Do}
		if len(one.Actions) > 0 {
			shown[i] = Step{one.Do + ":", w.Commands(one.Actions...)}
		}
	}
	var fix godwit.Fix
	var want [][]Step
	for i := range steps {
		for k := range steps {
			fix = append(fix, godwit.Way{steps[i]}, godwit.Way{steps[k], steps[i]})
			want = append(want, []Step{shown[i]}, []Step{shown[k], shown[i]})
			if diff := cmp.Diff(want, Ways(w.Text(fix))); diff != "" {
				t.Fatalf("%s: -want +got:\n%s", w.Text(fix), diff)
			}
		}
	}
}
