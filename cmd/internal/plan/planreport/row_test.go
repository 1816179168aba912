package planreport_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	storagedecision "github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

func hint(words string) string { return "godwit " + words + " --context=east" }

// summary is what a row says without its objects.
type summary struct {
	State planreport.State
	Next  string
	Sum   planreport.Counts
}

func of(r planreport.Row) summary { return summary{r.State, r.Next, r.Counts} }

func crds(states ...string) []crdreport.Plan {
	var all []crdreport.Plan
	for i, s := range states {
		all = append(all, crdreport.Plan{Name: fmt.Sprintf("crd%d", i), State: s})
	}
	return all
}

// TestCRDRow: the most severe CRD decides, and the next command is about those in that state.
func TestCRDRow(t *testing.T) {
	for reason, c := range map[string]struct {
		plans []crdreport.Plan
		want  summary
	}{
		"a cluster without CRDs":               {nil, summary{State: planreport.Clean}},
		"all are clean":                        {crds("Clean", "Clean"), summary{planreport.Clean, "", planreport.Counts{Clean: 2}}},
		"one is ready":                         {crds("Clean", "Ready"), summary{planreport.Ready, hint("crd run crd1"), planreport.Counts{Clean: 1, Ready: 1}}},
		"many are ready":                       {crds("Ready", "Ready", "Ready", "Ready"), summary{planreport.Ready, hint("crd run --all"), planreport.Counts{Ready: 4}}},
		"blocked is before ready":              {crds("Ready", "Blocked"), summary{planreport.Blocked, hint("crd plan crd1"), planreport.Counts{Ready: 1, Blocked: 1}}},
		"unknown is before blocked":            {crds("Unknown", "Blocked"), summary{planreport.Unknown, hint("crd plan crd0"), planreport.Counts{Unknown: 1, Blocked: 1}}},
		"a state that is not known is unknown": {crds("Clean", "Odd"), summary{planreport.Unknown, hint("crd plan crd1"), planreport.Counts{Clean: 1, Unknown: 1}}},
	} {
		if diff := cmp.Diff(c.want, of(planreport.CRDRow(c.plans, hint))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// TestRescueIsTheNextCommand: objects at a version that the CRD lacks have a command of their own.
func TestRescueIsTheNextCommand(t *testing.T) {
	plans := crds("Clean", "Blocked")
	plans[1].Blockers = []render.Problem{{Reason: storagedecision.ReasonStoredVersionNotInSpec.Name}}
	if r := planreport.CRDRow(plans, hint); r.Next != hint("crd rescue crd1") {
		t.Errorf("the next command is %q, want a rescue", r.Next)
	}
	if r := planreport.CRDRow(append(plans, crds("Blocked")...), hint); !strings.HasPrefix(r.Next, "godwit crd plan ") {
		t.Errorf("the next command for two CRDs is %q, want their plan", r.Next)
	}
}

// TestForbiddenListIsNotChecked: CRDs whose objects may not be listed are not clean, and one blocker is
// about all of them.
func TestForbiddenListIsNotChecked(t *testing.T) {
	plans := crds("Clean", "Unknown", "Unknown")
	for i := 1; i < 3; i++ {
		plans[i].Unlisted = &crdreport.Unlisted{Problem: render.Problem{Reason: render.ReasonForbidden.Name, Message: "may not list"}}
	}
	r := planreport.CRDRow(plans, hint).Lacking(render.Problem{Reason: render.ReasonForbidden.Name, Message: "all"})
	if r.State != planreport.NotChecked || r.Counts != (planreport.Counts{Clean: 1, Unknown: 2}) {
		t.Errorf("the row is %s %+v, want NotChecked with 2 unknown", r.State, r.Counts)
	}
	if diff := cmp.Diff(render.Of("", render.Problem{Reason: render.ReasonForbidden.Name, Message: "all"}), r.Blockers); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
}

// TestRevisionRow: every state of a revision has one of a row.
func TestRevisionRow(t *testing.T) {
	for state, want := range map[revisionreport.State]planreport.State{
		revisionreport.StateUpgrade: planreport.Ready, revisionreport.StateRelabel: planreport.Ready,
		revisionreport.StateInUse: planreport.InProgress, revisionreport.StateDeferred: planreport.InProgress,
		revisionreport.StateBlocked: planreport.Blocked, revisionreport.StateFailed: planreport.Blocked,
		revisionreport.StateRetained: planreport.Clean, revisionreport.StateRolledBack: planreport.Clean, revisionreport.StateSkipped: planreport.Clean,
		revisionreport.StateSucceeded: planreport.Clean, revisionreport.StateUnreferenced: planreport.Clean, revisionreport.StateUpToDate: planreport.Clean,
		"Odd": planreport.Unknown,
	} {
		r := planreport.RevisionRow(revisionreport.PlanList{Items: []revisionreport.Plan{{Namespace: "shop", Name: "one", State: state}}}, hint)
		if r.State != want || r.Counts.Total() != 1 {
			t.Errorf("%s: the row is %s with %d objects, want %s with 1", state, r.State, r.Counts.Total(), want)
		}
	}
	missing := revisionreport.PlanList{Items: []revisionreport.Plan{{State: revisionreport.StateUpToDate, Problem: render.Problem{Reason: decision.ReasonUnconfirmed.Name}}}}
	if r := planreport.RevisionRow(missing, hint); r.State != planreport.Unknown {
		t.Errorf("a revision that was not read again is %s, want Unknown", r.State)
	}
	retained := revisionreport.PlanList{VersionsInUse: []revision.VersionUse{{}}, Items: []revisionreport.Plan{{State: revisionreport.StateRetained}}}
	if r := planreport.RevisionRow(retained, hint); r.State != planreport.InProgress {
		t.Errorf("a cluster with an old version in use is %s, want InProgress", r.State)
	}
}

// TestExternalNameRow: a finding that needs the user blocks, one to compare does not, and what was not read is never clean.
func TestExternalNameRow(t *testing.T) {
	finding := func(name string, state externalnamereport.AuditState, reason string) externalnamereport.AuditFinding {
		return externalnamereport.AuditFinding{State: state, Resource: "members.example.org", Namespace: "shop", Name: name, Problem: render.Problem{Reason: reason, Message: "it is so"}}
	}
	report := func(objects int64, items ...externalnamereport.AuditFinding) externalnamereport.AuditReport {
		return externalnamereport.AuditReport{Objects: objects, Items: items}
	}
	unread := func(r externalnamereport.AuditReport, reasons ...string) externalnamereport.AuditReport {
		for _, reason := range reasons {
			r.Unread = append(r.Unread, externalnamereport.AuditUnread{Resource: "events", Problem: render.Problem{Reason: reason, Message: "no"}})
		}
		return r
	}
	audit := hint("externalname audit --resource=members.example.org")
	lost, twice := finding("anna", externalnamereport.UserAction, "NameLost"), finding("anna", externalnamereport.Compare, "CreatedTwice")
	interrupted := finding("bob", externalnamereport.Compare, "RenamingInterrupted")
	for reason, c := range map[string]struct {
		report externalnamereport.AuditReport
		want   summary
	}{
		"nothing is found":            {report(2), summary{planreport.Clean, "", planreport.Counts{Clean: 2}}},
		"a lost name":                 {report(2, lost), summary{planreport.Blocked, audit, planreport.Counts{Clean: 1, Blocked: 1}}},
		"two findings of one":         {report(2, twice, lost), summary{planreport.Blocked, audit, planreport.Counts{Clean: 1, Blocked: 1}}},
		"to compare":                  {report(1, twice), summary{planreport.Ready, audit, planreport.Counts{Ready: 1}}},
		"an interrupted renaming":     {report(1, interrupted), summary{planreport.Ready, hint("externalname rollback --resource=members.example.org --namespace=shop"), planreport.Counts{Ready: 1}}},
		"the lost name comes first":   {report(2, interrupted, lost), summary{planreport.Blocked, audit, planreport.Counts{Ready: 1, Blocked: 1}}},
		"may not be read":             {unread(report(2), "Forbidden"), summary{planreport.NotChecked, hint("externalname audit"), planreport.Counts{Clean: 2}}},
		"can't be read":               {unread(report(0), "Forbidden", "Unreadable"), summary{planreport.Unknown, hint("externalname audit"), planreport.Counts{}}},
		"may not be read, and a loss": {unread(report(1, lost), "Forbidden"), summary{planreport.NotChecked, audit, planreport.Counts{Blocked: 1}}},
	} {
		if diff := cmp.Diff(c.want, of(planreport.ExternalNameRow(c.report, nil, hint))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	r := planreport.ExternalNameRow(unread(report(1), "Forbidden", "Forbidden"), &render.Problem{Reason: "Forbidden", Remedy: "grant it"}, hint)
	if len(r.Blockers) != 1 || r.Blockers[0].Remedy != "grant it" {
		t.Errorf("the blockers are %+v, want one with the command that grants the permissions", r.Blockers)
	}
}

// TestHubRow: a migration that has not moved every cluster is not clean, unless another one retries it.
func TestHubRow(t *testing.T) {
	migration := func(name string, phase api.Phase, settled bool, moved int32) planreport.Migration {
		return planreport.Migration{Migration: clusterreport.Migration{
			Namespace: "ns", Name: name, Phase: phase, Settled: settled, Counts: clusterreport.Counts{Total: 2, Moved: moved},
		}, Status: "status " + name, Retry: "retry " + name}
	}
	stalled := migration("east", api.PhaseRegistering, false, 0)
	stalled.Stalled = true
	elsewhere := migration("east", api.PhaseFailed, true, 0)
	elsewhere.Retry = ""
	for reason, c := range map[string]struct {
		migrations []planreport.Migration
		state      planreport.State
		next       string
	}{
		"no migration":                   {nil, planreport.Clean, ""},
		"no manager has observed it":     {[]planreport.Migration{migration("east", "", false, 0)}, planreport.Blocked, "status east"},
		"it moves clusters":              {[]planreport.Migration{migration("east", api.PhaseRegistering, false, 1)}, planreport.InProgress, "status east --watch"},
		"it does not continue by itself": {[]planreport.Migration{stalled}, planreport.Blocked, "status east"},
		"it moved all":                   {[]planreport.Migration{migration("east", api.PhaseCompleted, true, 2)}, planreport.Clean, ""},
		"it moved some":                  {[]planreport.Migration{migration("east", api.PhaseCompleted, true, 1)}, planreport.Blocked, "retry east"},
		"it failed":                      {[]planreport.Migration{migration("east", api.PhaseFailed, true, 0)}, planreport.Blocked, "retry east"},
		"a retry needs another context":  {[]planreport.Migration{elsewhere}, planreport.Blocked, "status east"},
		"it failed, and was retried": {[]planreport.Migration{migration("east", api.PhaseFailed, true, 0), migration("east-retry-1", api.PhaseCompleted, true, 2)},
			planreport.Clean, ""},
	} {
		if r := planreport.HubRow(c.migrations); r.State != c.state || r.Next != c.next {
			t.Errorf("%s: the row is %s, next %q, want %s, next %q", reason, r.State, r.Next, c.state, c.next)
		}
	}
}

// TestRowsAreBounded: the most severe objects are kept, and the counts have all.
func TestRowsAreBounded(t *testing.T) {
	states := make([]string, 1000)
	for i := range states {
		states[i] = "Clean"
	}
	states[999] = "Blocked"
	r := planreport.CRDRow(crds(states...), hint)
	if len(r.Objects) != 500 || r.ObjectsLeftOut != 500 || r.Counts.Total() != 1000 || r.Objects[0].Name != "crd999" {
		t.Errorf("the row has %d objects of %d, %d left out, the first is %s", len(r.Objects), r.Counts.Total(), r.ObjectsLeftOut, r.Objects[0].Name)
	}
}

// TestMarkdownOfOthers: text of a cluster has no meaning in Markdown, and a command stays as it is.
func TestMarkdownOfOthers(t *testing.T) {
	rows := []planreport.Row{{Cluster: "a|b", Domain: planreport.CRDs, State: planreport.Blocked, Next: "godwit crd plan 'a`b'",
		Blockers: render.Of("", render.Problem{Reason: "Odd", Message: "<b>*x*</b> [l](u)", Remedy: "run: x -p '[{\"a\": 1}]'"})}}
	var out bytes.Buffer
	if err := planreport.WriteMarkdown(&out, planreport.NewPlanList(rows, "v1", time.Time{})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`| a\|b |`, "`` godwit crd plan 'a`b' ``", `&lt;b&gt;\*x\*&lt;/b&gt; \[l](u)`, "`run: x -p '[{\"a\": 1}]'`"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, out.String())
		}
	}
}

// TestReferenceRow: what is broken blocks, a leftover has a next command, and what was not read is never clean.
func TestReferenceRow(t *testing.T) {
	diagnoses := func(findings ...[]crdreport.Leftover) crdreport.DoctorReport {
		d := crdreport.NoDoctorReport()
		for i, f := range findings {
			state := "Clean"
			if len(f) > 0 {
				state = "Stale"
			}
			d.Items = append(d.Items, crdreport.Diagnosis{Name: fmt.Sprintf("crd%d", i), State: state, Findings: f})
		}
		return d
	}
	unread := func(d crdreport.DoctorReport, reasons ...string) crdreport.DoctorReport {
		for _, r := range reasons {
			d.Unread = append(d.Unread, crdreport.Unread{Resource: "secrets", Problem: render.Problem{Reason: r, Message: "no", Remedy: "see why"}})
		}
		for i := range d.Items {
			if d.Items[i].State == "Clean" {
				d.Items[i].State = "Unknown"
			}
		}
		return d
	}
	alone := func(d crdreport.DoctorReport) crdreport.DoctorReport {
		d.Unread = []crdreport.Unread{{Resource: "metrics.k8s.io/v1beta1", Problem: render.Problem{Reason: "NotServed", Message: "no", Remedy: "see why"}, Alone: true}}
		return d
	}
	broken, leftover := []crdreport.Leftover{{Reason: "A", Broken: true}, {Reason: "B"}}, []crdreport.Leftover{{Reason: "B"}}
	for reason, c := range map[string]struct {
		report crdreport.DoctorReport
		want   summary
	}{
		"no CRD":              {diagnoses(), summary{planreport.Clean, "", planreport.Counts{}}},
		"nothing found":       {diagnoses(nil, nil), summary{planreport.Clean, "", planreport.Counts{Clean: 2}}},
		"a leftover":          {diagnoses(nil, leftover), summary{planreport.Ready, hint("crd doctor crd1"), planreport.Counts{Clean: 1, Ready: 1}}},
		"broken":              {diagnoses(leftover, broken), summary{planreport.Blocked, hint("crd doctor crd1"), planreport.Counts{Ready: 1, Blocked: 1}}},
		"many":                {diagnoses(broken, broken, broken, broken), summary{planreport.Blocked, hint("crd doctor"), planreport.Counts{Blocked: 4}}},
		"forbidden":           {unread(diagnoses(nil, broken), "Forbidden"), summary{planreport.NotChecked, hint("crd doctor crd0"), planreport.Counts{Unknown: 1, Blocked: 1}}},
		"no answer as well":   {unread(diagnoses(nil), "Forbidden", "Timeout"), summary{planreport.Unknown, hint("crd doctor crd0"), planreport.Counts{Unknown: 1}}},
		"others unread alone": {alone(diagnoses(nil)), summary{planreport.Clean, "", planreport.Counts{Clean: 1}}},
		"unread, and no CRD":  {unread(diagnoses(), "Forbidden"), summary{planreport.NotChecked, hint("crd doctor"), planreport.Counts{}}},
		"unread, and blocked": {unread(diagnoses(broken), "Forbidden"), summary{planreport.NotChecked, hint("crd doctor"), planreport.Counts{Blocked: 1}}},
	} {
		if diff := cmp.Diff(c.want, of(planreport.ReferenceRow(c.report, hint, "an administrator runs it"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	r := planreport.ReferenceRow(unread(diagnoses(), "Forbidden"), hint, "an administrator runs it")
	if len(r.Blockers) != 1 || r.Blockers[0].Remedy != "an administrator runs it" {
		t.Errorf("the blockers are %+v, want one with the command of an administrator", r.Blockers)
	}
}

// TestInterrupted: an interrupted rescue and an interrupted run are never clean, and have their command.
func TestInterrupted(t *testing.T) {
	plans := crds("Blocked", "Ready")
	plans[0].Blockers = []render.Problem{{Reason: storagedecision.ReasonRescueInterrupted.Name}}
	rescued := planreport.CRDRow(plans, hint)
	if diff := cmp.Diff(summary{planreport.Blocked, hint("crd rescue crd0"), planreport.Counts{Ready: 1, Blocked: 1}}, of(rescued)); diff != "" {
		t.Errorf("a rescue (-want +got):\n%s", diff)
	}
	run := planreport.ResourceRow([]planreport.Left{{Name: "configmaps", Complete: true}, {Name: "secrets"}}, hint)
	if diff := cmp.Diff(summary{planreport.Ready, hint("resource run configmaps secrets"), planreport.Counts{Ready: 2}}, of(run)); diff != "" {
		t.Errorf("a run (-want +got):\n%s", diff)
	}
	within := planreport.ResourceRow([]planreport.Left{{Name: "secrets", Namespace: "shop"}}, hint)
	if within.Next != hint("resource run secrets -n shop") || within.Objects[0].Name != "shop/secrets" {
		t.Errorf("a run within a namespace: %q, objects %+v", within.Next, within.Objects)
	}
}

func TestToDo(t *testing.T) {
	rows := []planreport.Row{
		{Cluster: "east", Domain: planreport.CRDs, State: planreport.Blocked, Objects: []planreport.Object{
			{Name: "a", State: planreport.Ready}, {Name: "b", State: planreport.Clean}, {Name: "c", State: planreport.Blocked},
		}},
		{Cluster: "east", Domain: planreport.References, State: planreport.Clean},
		{Cluster: "west", Domain: planreport.Cluster, State: planreport.Unreachable},
	}
	want := []string{"east/CRDs/a", "east/CRDs/c", "west/Cluster"}
	if diff := cmp.Diff(want, planreport.ToDo(rows)); diff != "" {
		t.Errorf("what is clean is not to be done, and a row without objects is (-want +got):\n%s", diff)
	}
}
