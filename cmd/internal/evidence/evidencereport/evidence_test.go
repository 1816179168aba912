package evidencereport_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/evidence/evidencereport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcereport"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
)

// file is a document in the folder of a cluster.
func file(t *testing.T, name string, document any) evidencereport.File {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	folder, _, nested := strings.Cut(name, "/")
	if !nested {
		folder = "evidence"
	}
	return evidencereport.File{Name: name, Cluster: folder, Folder: nested, Text: text, Time: time.Unix(1_790_000_000, 0)}
}

// one gathers files that are of one cluster.
func one(t *testing.T, files ...evidencereport.File) evidencereport.Report {
	t.Helper()
	reports := evidencereport.Gather(files)
	if len(reports) != 1 {
		t.Fatalf("%d reports, want 1: %+v", len(reports), reports)
	}
	return reports[0]
}

func crdPlan(t *testing.T, name, state string) evidencereport.File {
	return file(t, name, crdreport.PlanList([]crdreport.Plan{{Name: "widgets.example.com", State: state, StorageVersion: "v2"}}))
}

func crdRun(t *testing.T, name string, result crdreport.Result) evidencereport.File {
	return file(t, name, crdreport.RunList([]crdreport.Run{{Name: "widgets.example.com", StorageVersion: "v2", Result: result}}))
}

func verification(t *testing.T, name string, old int64) evidencereport.File {
	return file(t, name, crdreport.VerificationList([]crdreport.Verification{{Name: "widgets.example.com", StorageVersion: "v2", Objects: 3, ByVersion: map[string]int64{"v1": old, "v2": 3 - old}}}))
}

// TestStateOfAnObject: the first plan is before, and the last document is after. A run that failed, and
// a verification that proves the contrary, are never complete.
func TestStateOfAnObject(t *testing.T) {
	type state struct {
		Result        evidencereport.Result
		Before, After planreport.State
		Run, Proof    string
	}
	for reason, c := range map[string]struct {
		files []evidencereport.File
		want  state
	}{
		"only a plan": {[]evidencereport.File{crdPlan(t, "east/1.json", "Ready")}, state{evidencereport.Incomplete, planreport.Ready, planreport.Ready, "", ""}},
		"a plan and a run": {[]evidencereport.File{crdPlan(t, "east/1.json", "Ready"), crdRun(t, "east/2.json", crdreport.Succeeded)},
			state{evidencereport.Complete, planreport.Ready, planreport.Clean, "Succeeded", ""}},
		"names decide, and not the order of the directory": {[]evidencereport.File{crdRun(t, "east/2.json", crdreport.Succeeded), crdPlan(t, "east/1.json", "Ready")},
			state{evidencereport.Complete, planreport.Ready, planreport.Clean, "Succeeded", ""}},
		"a plan after the run is not before": {[]evidencereport.File{crdRun(t, "east/1.json", crdreport.Partial), crdPlan(t, "east/2.json", "Ready")},
			state{evidencereport.Incomplete, "", planreport.Ready, "Partial", ""}},
		"a run that failed": {[]evidencereport.File{crdPlan(t, "east/1.json", "Ready"), crdRun(t, "east/2.json", crdreport.Failed)},
			state{evidencereport.Incomplete, planreport.Ready, planreport.Blocked, "Failed", ""}},
		"a result that is not known": {[]evidencereport.File{crdRun(t, "east/2.json", "Odd")}, state{evidencereport.Incomplete, "", planreport.Unknown, "Odd", ""}},
		"proven": {[]evidencereport.File{crdPlan(t, "east/1.json", "Ready"), crdRun(t, "east/2.json", crdreport.Succeeded), verification(t, "east/3.json", 0)},
			state{evidencereport.Complete, planreport.Ready, planreport.Clean, "Succeeded", "Proven: 3 objects in etcd at v2"}},
		"not proven": {[]evidencereport.File{crdPlan(t, "east/1.json", "Ready"), crdRun(t, "east/2.json", crdreport.Succeeded), verification(t, "east/3.json", 1)},
			state{evidencereport.Incomplete, planreport.Ready, planreport.Ready, "Succeeded", "NotProven"}},
	} {
		r := one(t, c.files...)
		if len(r.Objects) != 1 {
			t.Errorf("%s: %d objects, want 1", reason, len(r.Objects))
			continue
		}
		o := r.Objects[0]
		if diff := cmp.Diff(c.want, state{r.Result, o.Before, o.After, o.Result, o.Proof}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// TestUnread: a file that says nothing is named, and its cluster is not complete.
func TestUnread(t *testing.T) {
	for reason, c := range map[string]struct{ text, want string }{
		"no JSON":           {"it went well", evidencereport.ReasonFileUnreadable.Name},
		"a part of JSON":    {`{"kind": "CRDPlanList", "items": [`, evidencereport.ReasonFileUnreadable.Name},
		"no kind":           {`{"items": []}`, evidencereport.ReasonKindUnknown.Name},
		"another kind":      {`{"kind": "Deployment"}`, evidencereport.ReasonKindUnknown.Name},
		"a newer release":   {`{"apiVersion": "cli.godwit.dev/v2", "kind": "CRDPlanList", "items": []}`, evidencereport.ReasonNewerFormat.Name},
		"a report":          {`{"kind": "MigrationReport"}`, evidencereport.ReasonKindUnknown.Name},
		"items of no list":  {`{"kind": "CRDPlanList", "items": "none"}`, evidencereport.ReasonFileUnreadable.Name},
		"a list, not a map": {`[]`, evidencereport.ReasonFileUnreadable.Name},
	} {
		odd := evidencereport.File{Name: "east/2.json", Cluster: "east", Folder: true, Text: []byte(c.text)}
		r := one(t, crdPlan(t, "east/1.json", "Clean"), odd)
		if len(r.Unread) != 1 || r.Unread[0].Reason != c.want || r.Unread[0].File != "east/2.json" || r.Result != evidencereport.Incomplete {
			t.Errorf("%s: unread %+v, result %s, want %s and Incomplete", reason, r.Unread, r.Result, c.want)
		}
		if len(r.Documents) != 1 {
			t.Errorf("%s: %d documents, want 1", reason, len(r.Documents))
		}
	}
}

// TestPlansOfSeveralClusters: a plan beside the folders adds to the report of each cluster, and what the
// last plan does not list any more is clean.
func TestPlansOfSeveralClusters(t *testing.T) {
	rows := func(states ...string) []planreport.Row {
		var all []planreport.Row
		for i, s := range states {
			r := planreport.CRDRow([]crdreport.Plan{{Name: "widgets.example.com", State: s}, {Name: "gadgets.example.com", State: "Clean"}}, func(string) string { return "" })
			r.Cluster = []string{"canary", "east"}[i]
			all = append(all, r)
		}
		return all
	}
	now := time.Unix(1_790_000_000, 0)
	away := planreport.FailedRow(planreport.Cluster, planreport.Unreachable, render.Problem{Reason: "Unreadable"})
	away.Cluster = "west"
	reports := evidencereport.Gather([]evidencereport.File{
		file(t, "1-plan.json", planreport.NewPlanList(append(rows("Ready", "Ready"), away), "v1.0.0", now)),
		crdRun(t, "canary/2-run.json", crdreport.Succeeded),
		file(t, "z-plan.json", planreport.NewPlanList(rows("Clean", "Blocked"), "v1.0.1", now)),
	})
	got := map[string]evidencereport.Result{}
	for _, r := range reports {
		got[r.Cluster] = r.Result
	}
	want := map[string]evidencereport.Result{"canary": evidencereport.Complete, "east": evidencereport.Incomplete, "west": evidencereport.Incomplete}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("results (-want +got):\n%s", diff)
	}
	canary := reports[0]
	if diff := cmp.Diff([]evidencereport.Domain{{Name: planreport.CRDs, Before: planreport.Counts{Clean: 1, Ready: 1}, After: planreport.Counts{Clean: 2}}}, canary.Domains); diff != "" {
		t.Errorf("domains of canary (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"v1.0.0", "v1.0.1"}, canary.Versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if d := canary.Documents[0]; d.TimeOf != "Document" || !d.Time.Equal(now) {
		t.Errorf("the time of the plan is %v of the %s, want that of the document", d.Time, d.TimeOf)
	}
}

// TestOtherDomains: runs of revisions and migrations of managed clusters have the states of their plans.
func TestOtherDomains(t *testing.T) {
	r := one(t,
		file(t, "east/1.json", revisionreport.PlanList{Kind: "RevisionPlanList", Items: []revisionreport.Plan{{Namespace: "shop", Name: "web", State: revisionreport.StateUpgrade}}}),
		file(t, "east/2.json", revisionreport.NewRunReport(slices.Values([]revisionreport.Run{{Namespace: "shop", Name: "web", Phase: revisionreport.StateRetained, Replacement: "web-2"}}))),
		file(t, "east/3.json", clusterreport.Migration{Kind: "ClusterMigrationReport", Namespace: "ns", Name: "move", Phase: api.PhaseCompleted, Settled: true, Counts: clusterreport.Counts{Total: 2, Moved: 2}}),
		file(t, "east/4.json", map[string]any{"kind": "VersionList", "items": []map[string]string{{"role": "Client", "version": "v1.0.0"}}}),
		file(t, "east/5.json", map[string]any{"kind": "RevisionRunReport"}), // without items
	)
	if r.Result != evidencereport.Complete || len(r.Objects) != 2 || len(r.Unread) != 0 || len(r.Documents) != 5 || len(r.Versions) != 1 {
		t.Errorf("the report is %+v, want complete with 2 objects of 5 documents", r)
	}
}

// TestEmpty: documents about nothing prove nothing.
func TestEmpty(t *testing.T) {
	r := one(t, file(t, "east/1.json", map[string]any{"kind": "VersionList", "items": []map[string]string{{"role": "Client", "version": "v1.0.0"}}}))
	if r.Result != evidencereport.Incomplete {
		t.Errorf("a report without an object is %s, want Incomplete", r.Result)
	}
	var page bytes.Buffer
	if err := evidencereport.WriteHTML(&page, r); err != nil || !strings.Contains(page.String(), "Incomplete: 1 document, 0 of 0 objects clean.") {
		t.Errorf("the page does not say so: %v\n%s", err, page.String())
	}
}

// TestDocumentsOfAnotherCluster: a file in the wrong folder is no evidence. What a document does not say is not compared.
func TestDocumentsOfAnotherCluster(t *testing.T) {
	from := func(name, uid, user string) evidencereport.File {
		l := crdreport.RunList([]crdreport.Run{{Name: "widgets.example.com", StorageVersion: "v2", Result: crdreport.Succeeded, DurationSeconds: 4.5}, {Name: "gears.example.com", Result: crdreport.NoChange, DurationSeconds: 1}})
		return file(t, name, l.WithProvenance(render.Provenance{Origin: &render.Origin{Server: "https://" + uid, ClusterUID: uid, User: user, Version: "v1.2.3"}}))
	}
	plan := file(t, "east/0.json", planreport.NewPlanList([]planreport.Row{{Cluster: "east", ClusterUID: "a", Domain: planreport.CRDs, State: planreport.Clean}}, "v1.2.3", time.Unix(1_780_000_000, 0)))
	r := one(t, plan, crdRun(t, "east/1.json", crdreport.Succeeded), from("east/2.json", "a", "alice"), from("east/3.json", "b", "bob"), from("east/4.json", "", "carol"))
	if r.Result != evidencereport.Incomplete || len(r.Unread) != 1 || r.Unread[0].File != "east/3.json" || r.Unread[0].Reason != evidencereport.ReasonOtherCluster.Name {
		t.Errorf("%s, not read: %+v", r.Result, r.Unread)
	}
	want := &render.Origin{Server: "https://a", ClusterUID: "a", User: "alice", Version: "v1.2.3"}
	if diff := cmp.Diff(want, r.Origin); diff != "" || !slices.Equal(r.Users, []string{"alice", "carol"}) || !slices.Equal(r.Versions, []string{"v1.2.3"}) {
		t.Errorf("users %v, versions %v, origin (-want +got):\n%s", r.Users, r.Versions, diff)
	}
	if d := r.Documents[2]; d.DurationSeconds != 4.5 || len(d.SHA256) != 64 || d.SHA256 == r.Documents[0].SHA256 {
		t.Errorf("the longest item took 4.5 s: %+v", d)
	}
}

// TestPreflight: the preflight of a migration between two hubs is the state before it.
func TestPreflight(t *testing.T) {
	preflightOf := func(name string, d preflight.Decision) evidencereport.File {
		p := clusterreport.NoPreflight("hub1", "hub2")
		p.Decision = d
		p.Checks = []clusterreport.Check{{Name: "Heartbeat", Decision: d, Problem: render.Problem{Reason: "HeartbeatStale", Message: "an hour ago"}}}
		return file(t, name, p.WithProvenance(render.Provenance{Time: time.Unix(1_780_000_000, 0)}))
	}
	m := clusterreport.NoMigration("ns", "east")
	m.From, m.To, m.Phase, m.Settled, m.Counts = "hub1", "hub2", api.PhaseCompleted, true, clusterreport.Counts{Total: 2, Moved: 2}
	migrated := file(t, "hub/2-status.json", m)
	for reason, c := range map[string]struct {
		files  []evidencereport.File
		name   string
		before planreport.State
		after  planreport.State
	}{
		"before any migration":          {[]evidencereport.File{preflightOf("hub/1.json", preflight.Blocked)}, "from hub1 to hub2", planreport.Blocked, planreport.Blocked},
		"what is at risk moves as well": {[]evidencereport.File{preflightOf("hub/1.json", preflight.AtRisk)}, "from hub1 to hub2", planreport.Ready, planreport.Ready},
		"what was not checked":          {[]evidencereport.File{preflightOf("hub/1.json", preflight.NotChecked)}, "from hub1 to hub2", planreport.NotChecked, planreport.NotChecked},
		"a decision that is not known":  {[]evidencereport.File{preflightOf("hub/1.json", "Odd")}, "from hub1 to hub2", planreport.Unknown, planreport.Unknown},
		"and the migration":             {[]evidencereport.File{preflightOf("hub/1.json", preflight.Blocked), migrated}, "ns/east", planreport.Blocked, planreport.Clean},
	} {
		r := one(t, c.files...)
		if len(r.Objects) != 1 || r.Objects[0].Name != c.name || r.Objects[0].Before != c.before || r.Objects[0].After != c.after {
			t.Errorf("%s: the objects are %+v, want %s, before %s, after %s", reason, r.Objects, c.name, c.before, c.after)
			continue
		}
		if d := r.Documents[0]; d.TimeOf != "Document" || d.Time.Unix() != 1_780_000_000 {
			t.Errorf("%s: the preflight is of %s, by its %s", reason, d.Time, d.TimeOf)
		}
	}
}

// TestResources: a plan after a run says nothing, since a resource with objects is always Ready; etcd proves.
func TestResources(t *testing.T) {
	plan := func(name string) evidencereport.File {
		return file(t, name, resourcereport.PlanList([]resourcereport.Plan{{Name: "secrets", State: "Ready"}}))
	}
	run := func(name string, result resourcereport.Result) evidencereport.File {
		return file(t, name, resourcereport.RunList([]resourcereport.Run{{Name: "secrets", Result: result}}))
	}
	verified := func(name string, result resourcereport.Outcome) evidencereport.File {
		return file(t, name, resourcereport.VerificationList([]resourcereport.Verification{{Name: "secrets", Result: result, Objects: 2, ByForm: map[string]int64{"k8s:enc:aescbc:v1:key2": 2}}}))
	}
	for reason, c := range map[string]struct {
		files []evidencereport.File
		after planreport.State
		proof string
	}{
		"only a plan":       {[]evidencereport.File{plan("e/1")}, planreport.Ready, ""},
		"a run":             {[]evidencereport.File{plan("e/1"), run("e/2", resourcereport.Succeeded), plan("e/3")}, planreport.Clean, ""},
		"a dry run":         {[]evidencereport.File{run("e/2", resourcereport.Accepted)}, planreport.Ready, ""},
		"a part of a run":   {[]evidencereport.File{run("e/2", resourcereport.Partial)}, planreport.Blocked, ""},
		"an unknown result": {[]evidencereport.File{run("e/2", "Odd")}, planreport.Unknown, ""},
		"proven":            {[]evidencereport.File{run("e/2", resourcereport.NoChange), verified("e/3", resourcereport.Proven)}, planreport.Clean, "Proven: 2 objects in etcd as k8s:enc:aescbc:v1:key2"},
		"not proven":        {[]evidencereport.File{run("e/2", resourcereport.Succeeded), verified("e/3", resourcereport.NotProven)}, planreport.Ready, "NotProven"},
		"not verified":      {[]evidencereport.File{verified("e/3", resourcereport.NotVerified)}, planreport.Ready, "NotProven"},
	} {
		if o := one(t, c.files...).Objects[0]; o.After != c.after || o.Proof != c.proof {
			t.Errorf("%s: after %s, proof %q, want %s, %q", reason, o.After, o.Proof, c.after, c.proof)
		}
	}
}

// TestRescuesAndDiagnoses: a rescue that was undone leaves objects that can't be read, and what the doctor could not
// read is never clean.
func TestRescuesAndDiagnoses(t *testing.T) {
	rescued := func(result crdreport.Result) evidencereport.File {
		return file(t, "e/1", crdreport.RescueList([]crdreport.Rescue{{Name: "widgets.example.com", Result: result}}))
	}
	diagnosis := func(name string, broken bool, unread ...crdreport.Unread) evidencereport.File {
		r := crdreport.NoDoctorReport()
		r.Items = []crdreport.Diagnosis{{Name: "widgets.example.com", State: "Clean"}}
		if broken {
			r.Items[0].State, r.Items[0].Findings = "Stale", []crdreport.Leftover{{Reason: "WebhookNotServed", Broken: true}}
		}
		r.Unread = unread
		return file(t, name, r)
	}
	for reason, c := range map[string]struct {
		files []evidencereport.File
		want  evidencereport.Result
		after planreport.State
	}{
		"rescued":  {[]evidencereport.File{rescued(crdreport.Rescued)}, evidencereport.Complete, planreport.Clean},
		"healthy":  {[]evidencereport.File{rescued(crdreport.Healthy)}, evidencereport.Complete, planreport.Clean},
		"undone":   {[]evidencereport.File{rescued(crdreport.Undone)}, evidencereport.Incomplete, planreport.Blocked},
		"broken":   {[]evidencereport.File{diagnosis("e/1", true)}, evidencereport.Incomplete, planreport.Blocked},
		"repaired": {[]evidencereport.File{diagnosis("e/1", true), diagnosis("e/2", false)}, evidencereport.Complete, planreport.Clean},
		"unread":   {[]evidencereport.File{diagnosis("e/1", false, crdreport.Unread{Resource: "secrets", Problem: render.Problem{Reason: "Forbidden"}})}, evidencereport.Incomplete, planreport.NotChecked},
	} {
		if r := one(t, c.files...); r.Result != c.want || r.Objects[0].After != c.after {
			t.Errorf("%s: %s, after %s, want %s, %s", reason, r.Result, r.Objects[0].After, c.want, c.after)
		}
	}
}

// TestInterruptedRun: the last plan says whether a run over built-in resources has ended.
func TestInterruptedRun(t *testing.T) {
	plan := func(name string, rows ...planreport.Row) evidencereport.File {
		rows = append([]planreport.Row{planreport.CRDRow(nil, func(string) string { return "" })}, rows...)
		return file(t, name, planreport.NewPlanList(rows, "v1.0.0", time.Unix(1_790_000_000, 0)))
	}
	interrupted := planreport.ResourceRow([]planreport.Left{{Name: "secrets"}}, func(string) string { return "" })
	if r := one(t, plan("e/1", interrupted)); r.Result != evidencereport.Incomplete {
		t.Errorf("an interrupted run is %s", r.Result)
	}
	if r := one(t, plan("e/1", interrupted), plan("e/2")); r.Result != evidencereport.Complete {
		t.Errorf("after its end the report is %s: %+v", r.Result, r.Objects)
	}
}

// TestVersions: the command line names its version, and a manager wrote no document.
func TestVersions(t *testing.T) {
	version := file(t, "e/0", map[string]any{"kind": "VersionList", "items": []map[string]string{
		{"role": "Client", "version": "v1.2.3"}, {"role": "Manager", "version": "v1.2.0"}, {"role": "APIServer", "version": "v1.36.0"},
	}})
	r := one(t, version, crdRun(t, "e/1", crdreport.Succeeded))
	if diff := cmp.Diff([]string{"v1.2.3"}, r.Versions); diff != "" || r.Result != evidencereport.Complete {
		t.Errorf("the report is %s, versions (-want +got):\n%s", r.Result, diff)
	}
}
