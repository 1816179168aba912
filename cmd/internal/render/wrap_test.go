package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProblemLines(t *testing.T) {
	const command = "kubectl get crd widgets.example.com -o jsonpath='{.spec.conversion.webhook.clientConfig}'"
	problem := Problem{
		Reason:  "WebhookUnavailable",
		Message: "the conversion webhook of widgets.example.com does not answer; see `kubectl get --raw /readyz` for more",
		Remedy:  "bring the webhook up; where it is: " + command + "; or if it is gone: godwit crd rescue widgets.example.com; then check again",
	}
	cases := map[string]struct {
		reason  string
		problem Problem
		width   int
		want    string
	}{
		"no terminal": {"a pipe gets whole lines, and each command has its own", problem, 0, `
  ✗ WebhookUnavailable: the conversion webhook of widgets.example.com does not answer; see ` + "`kubectl get --raw /readyz`" + ` for more
    → 1. bring the webhook up; where it is:
           ` + command + `
      2. if it is gone:
           godwit crd rescue widgets.example.com
         then check again
`},
		"a narrow terminal": {"names, commands and text in backquotes stay whole", problem, 40, `
  ✗ WebhookUnavailable: the conversion
    webhook of widgets.example.com does
    not answer; see
    ` + "`kubectl get --raw /readyz`" + ` for more
    → 1. bring the webhook up; where it
         is:
           ` + command + `
      2. if it is gone:
           godwit crd rescue widgets.example.com
         then check again
`},
		"one way": {"it has no number", Problem{Reason: "A", Message: "b", Remedy: "c"}, 80, `
  ✗ A: b
    → c
`},
		"no remedy": {"only the cause", Problem{Reason: "A", Message: "b"}, 80, `
  ✗ A: b
`},
		"a command alone": {"it has no line of words", Problem{Reason: "A", Message: "b", Remedy: "godwit plan"}, 8, `
  ✗ A: b
    → godwit plan
`},
		"a name of 253 characters": {"it is whole, on a line of its own", Problem{Reason: "A", Message: "no " + strings.Repeat("x", 253) + " here"}, 40, `
  ✗ A: no
    ` + strings.Repeat("x", 253) + `
    here
`},
		"wide characters": {"each has two columns", Problem{Reason: "A", Message: "名前 名前 名前"}, 16, `
  ✗ A: 名前 名前
    名前
`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, "\n"+c.problem.Lines(Style{Width: c.width}, MarkBad)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
