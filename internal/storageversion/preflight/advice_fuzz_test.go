package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// FuzzReportFor checks what must hold of every report: what was refused is a denial, and each
// finding names the CRD and says what to do.
func FuzzReportFor(f *testing.F) {
	for _, words := range []string{webhookSays, webhookDown, "spec.color: Required value", "policy 'p' denied request: ",
		"ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "conversion webhook for a, Kind=B failed: no", "", "%!d(x)"} {
		f.Add(words, "", int32(500), uint8(1), uint8(30), true)
		f.Add(words, "no answer", int32(0), uint8(0), uint8(0), false)
		f.Add(words, "", int32(422), uint8(7), uint8(2), true)
	}
	f.Fuzz(func(t *testing.T, words, inconclusive string, code int32, changed, namespaces uint8, more bool) {
		a := attempt{namespace: "prod", name: "a", code: code, refusal: words}
		b := attempt{name: "b", inconclusive: inconclusive}
		for i := range changed % 8 {
			b.changed = append(b.changed, fmt.Sprintf("spec.f%d", i))
		}
		r := &result{
			write: decision.Writes[int(changed)%len(decision.Writes)], attempts: []attempt{a, b}, statusAttempts: []attempt{a},
			namespaces: int(namespaces), allSeen: more, timedOut: !more, unlisted: inconclusive, configs: []admissionConfig{painter},
		}
		facts := decision.Facts{CRD: kubetest.Widgets(kubetest.WithStatus)}
		report := reportFor(r, facts, decision.Policy{AcceptDenials: more}, "jane")
		if again := reportFor(r, facts, decision.Policy{AcceptDenials: more}, "jane"); !equality.Semantic.DeepEqual(report, again) {
			t.Error("one result has two reports")
		}
		s := report.Summary
		if s.Refused > 0 && len(report.Denials) == 0 || s.Inconclusive > 0 && len(report.Warnings) == 0 || s.Changed > 0 && len(report.Changes) == 0 {
			t.Errorf("a problem is not reported: %+v", report)
		}
		if s.Tried != s.Accepted+s.Changed+s.Refused+s.Inconclusive {
			t.Errorf("%+v does not add up", s)
		}
		for _, f := range slices.Concat(report.Denials, report.Changes, report.Warnings) {
			checkFinding(t, f, more)
			if err := fixtest.Check(f); err != nil {
				t.Error(err)
			}
		}
	})
}

func checkFinding(t *testing.T, f godwit.Finding, accepted bool) {
	t.Helper()
	if f.Reason == nil || !strings.Contains(f.Message, "widgets.example.com") || strings.Contains(f.Message, "\n") {
		t.Errorf("%s: %q is not one line that names the CRD", f.Reason, f.Message)
	}
	inForce := func(a godwit.Action) bool { run, ok := a.(godwit.RunMigration); return ok && run.AcceptDenials }
	if accepted && slices.ContainsFunc(f.Fix.Actions(), inForce) {
		t.Errorf("%s: the fix %q is in force already", f.Reason, f.Fix)
	}
	if f.Fix.String() == "" && !accepted {
		t.Errorf("%s: no fix", f.Reason)
	}
}
