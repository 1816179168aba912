package revision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

func TestRevisionPlanCode(t *testing.T) {
	inUse := &revision.Inventory{InUse: []revision.VersionUse{{Version: "v1"}}}
	cases := map[string]struct {
		actions   []decision.Action
		inventory *revision.Inventory
		want      frame.Code
	}{
		"nothing there":                      {nil, nil, frame.OK},
		"nothing left":                       {[]decision.Action{decision.UpToDate}, &revision.Inventory{}, frame.OK},
		"unreferenced in a namespace":        {[]decision.Action{decision.Unreferenced}, nil, frame.OK},
		"an unreferenced one uses a version": {[]decision.Action{decision.Unreferenced}, inUse, frame.Pending},
		"a virtual machine is running":       {[]decision.Action{decision.UpToDate, decision.Deferred}, nil, frame.Pending},
		"to relabel":                         {[]decision.Action{decision.Relabel}, nil, frame.Pending},
		"one is blocked, one waits":          {[]decision.Action{decision.Blocked, decision.Upgrade}, inUse, frame.Refused},
	}
	for name, tc := range cases {
		var items []decision.Item
		for _, a := range tc.actions {
			items = append(items, decision.Item{Action: a})
		}
		if got := planCode(items, tc.inventory); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestIncompleteScanIsNoPlan: what was not read again may be missing, so that the plan is neither
// pending nor blocked, and says how much it does not know.
func TestIncompleteScanIsNoPlan(t *testing.T) {
	items := []decision.Item{
		{Action: decision.Blocked, Reason: decision.ReasonSourceGone},
		{Action: decision.Deferred, Reason: decision.ReasonUnconfirmed},
		{Action: decision.Deferred, Reason: decision.ReasonUnconfirmed},
	}
	if got := planCode(items, nil); got != frame.Error {
		t.Errorf("exit code %d, want %d", got, frame.Error)
	}
	p := &pass{}
	for _, i := range items {
		p.plan(i)
	}
	for _, n := range []int64{unconfirmed(items), p.unconfirmed()} {
		said := &bytes.Buffer{}
		printIncomplete(&frame.App{Console: frame.NewConsole(said)}, n)
		if want := "! the scan is incomplete: it did not find 2 revisions that references name, and did not read them again\n"; said.String() != want {
			t.Errorf("%q, want %q", said, want)
		}
	}
	said := &bytes.Buffer{}
	if printIncomplete(&frame.App{Console: frame.NewConsole(said)}, unconfirmed(items[:1])); said.Len() > 0 {
		t.Errorf("%q of a complete scan", said)
	}
}

func TestRevisionRunCode(t *testing.T) {
	kept := revision.Result{Phase: revision.Retained}
	waits := revision.Result{Phase: revision.Retained, Item: decision.Item{Until: time.Unix(1, 0)}}
	dangling := revision.Result{Phase: revision.Failed, Item: decision.Item{Reason: decision.ReasonDangling}}
	unanswered := revision.Result{Phase: revision.Pending, Item: decision.Item{Reason: decision.ReasonUnanswered}}
	forbidden := revision.Result{Phase: revision.Analyzing, Item: decision.Item{Reason: decision.ReasonForbidden}}
	denied := revision.Result{Phase: revision.Failed, Item: decision.Item{Reason: decision.ReasonRefused}}
	unconfirmed := revision.Result{Item: decision.Item{Action: decision.Deferred, Reason: decision.ReasonUnconfirmed}}
	made := denied
	made.ReplacementUID = "5d0c2cf4"
	cases := map[string]struct {
		counts  revision.Counts
		results []revision.Result
		want    frame.Code
	}{
		"nothing to do":                           {revision.Counts{UpToDate: 3}, nil, frame.OK},
		"all gone":                                {revision.Counts{Succeeded: 3}, nil, frame.OK},
		"kept without a limit":                    {revision.Counts{Retained: 1}, []revision.Result{kept}, frame.OK},
		"kept for the retention":                  {revision.Counts{Retained: 1}, []revision.Result{waits}, frame.Pending},
		"a virtual machine is running":            {revision.Counts{Succeeded: 1, Deferred: 1}, nil, frame.Pending},
		"all others are up to date":               {revision.Counts{UpToDate: 1, Blocked: 1}, nil, frame.Refused},
		"all have failed":                         {revision.Counts{Failed: 1}, nil, frame.Refused},
		"refused before any write":                {revision.Counts{Failed: 1}, []revision.Result{denied}, frame.Refused},
		"refused after the new revision was made": {revision.Counts{Failed: 1}, []revision.Result{made}, frame.Partial},
		"others were upgraded":                    {revision.Counts{Retained: 1, Blocked: 1}, []revision.Result{waits}, frame.Partial},
		"a reference dangles":                     {revision.Counts{Failed: 1}, []revision.Result{dangling}, frame.Partial},
		"all are rolled back":                     {revision.Counts{RolledBack: 2}, nil, frame.OK},
		"the server did not answer":               {revision.Counts{Pending: 1}, []revision.Result{unanswered}, frame.Partial},
		"a scan is incomplete":                    {revision.Counts{Retained: 1, Deferred: 1}, []revision.Result{unconfirmed}, frame.Partial},
		"a permission is missing":                 {revision.Counts{Pending: 1}, []revision.Result{forbidden}, frame.Partial},
	}
	for name, tc := range cases {
		var rows []row
		for _, r := range tc.results {
			rows = append(rows, (&pass{}).newRow(r))
		}
		if got := runCode(tc.counts, rows); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestClockTimeNamesTheDayIfItIsAnother(t *testing.T) {
	now := time.Date(2026, 5, 6, 23, 30, 0, 0, time.Local)
	zone := now.Format("MST")
	for until, want := range map[time.Time]string{
		now.Add(10 * time.Minute):       "23:40:00 " + zone,
		now.Add(10 * time.Minute).UTC(): "23:40:00 " + zone, // as the API server says it
		now.Add(time.Hour):              "2026-05-07 00:30:00 " + zone,
		now.AddDate(1, 0, 0):            "2027-05-06 23:30:00 " + zone,
	} {
		if got := clockTime(until, now); got != want {
			t.Errorf("%v, at %v: %q, want %q", until, now, got, want)
		}
	}
}

// TestHintsCanBePasted: they lead to the same cluster, as the same user. Five name a
// namespace each, and one is for all.
func TestHintsCanBePasted(t *testing.T) {
	said := &bytes.Buffer{}
	a := &frame.App{Program: "godwit", Args: []string{"revision", "run", "-A", "--as=alice"}, Console: frame.NewConsole(said), Clock: clock.RealClock{}, Cluster: genericclioptions.NewConfigFlags(true)}
	*a.Cluster.Impersonate, *a.Cluster.Context, *a.Cluster.ImpersonateGroup = "alice", "the lab", []string{"a", "b"}
	p := &pass{session: &session{}}
	for _, namespace := range []string{"edge", "shop", "shop"} {
		p.rows = append(p.rows, p.newRow(revision.Result{Phase: revision.Retained, Item: decision.Item{Namespace: namespace, Until: time.Unix(1, 0)}}))
	}
	for n := range maxRollbackHints {
		p.rows = append(p.rows, p.newRow(revision.Result{Phase: revision.Retained, Item: decision.Item{Namespace: fmt.Sprint("z", n), Until: time.Unix(1, 0)}}))
	}
	printRetained(a, p)
	for _, want := range []string{
		"to delete 8 old revisions: godwit revision run -A --as=alice\n",
		"and likewise in 2 more namespaces, or in all: godwit revision rollback --all --all-namespaces --context='the lab' --as=alice --as-group=a --as-group=b\n",
		"godwit revision rollback --all --namespace=edge --context='the lab' --as=alice --as-group=a --as-group=b\n",
		"godwit revision rollback --all --namespace=shop --context='the lab' --as=alice --as-group=a --as-group=b\n",
	} {
		if strings.Count(said.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, said)
		}
	}
	said.Reset()
	p.session.installed.Reads = []string{"v2"}
	if printRetained(a, p); strings.Contains(said.String(), "rollback") {
		t.Errorf("a rollback that would be refused is offered:\n%s", said)
	}
}

// TestRowsOfWhatChangedSinceThePlan: a run has the rows of what its own scan finds. Another client deletes a virtual machine with
// its revisions, starts one, or takes a revision away that one names. A run that waits does not wait for a revision that is gone.
func TestRowsOfWhatChangedSinceThePlan(t *testing.T) {
	p := &pass{}
	for _, name := range []string{"blocked", "done", "gone", "running", "waits"} {
		p.plan(decision.Item{Name: name, Action: decision.Upgrade})
	}
	result := func(name string, a decision.Action, phase revision.Phase) revision.Result {
		return revision.Result{Phase: phase, Item: decision.Item{Name: name, Action: a, Until: time.Unix(1, 0)}}
	}
	for _, pass := range []struct {
		err     error
		results []revision.Result
		want    map[string]string
	}{
		{
			results: []revision.Result{
				result("blocked", decision.Blocked, ""), result("done", decision.Upgrade, revision.Succeeded), result("running", decision.Deferred, ""),
				result("waits", decision.Upgrade, revision.Retained), result("late", decision.Blocked, ""), result("unneeded", decision.Unreferenced, ""),
			},
			want: map[string]string{"blocked": "Blocked", "done": "Upgrade Succeeded", "running": "Deferred", "waits": "Upgrade Retained", "late": "Blocked"},
		},
		{
			err:  errors.New("the scan failed"),
			want: map[string]string{"blocked": "Blocked", "done": "Upgrade Succeeded", "running": "Deferred", "waits": "Upgrade Retained", "late": "Blocked"},
		},
		{
			results: []revision.Result{result("running", decision.Deferred, "")},
			want:    map[string]string{"done": "Upgrade Succeeded", "running": "Deferred"},
		},
	} {
		u := update{pass: p, found: make([]bool, len(p.rows))}
		for _, r := range pass.results {
			u.add(r)
		}
		p.err = pass.err
		u.end()
		p.tally()
		got := map[string]string{}
		for _, one := range p.rows {
			got[one.name] = strings.TrimSpace(fmt.Sprint(one.outcome().action, " ", one.outcome().phase))
		}
		if !maps.Equal(got, pass.want) {
			t.Errorf("rows %v, want %v", got, pass.want)
		}
	}
	if n, _ := p.retainedRevisions(revision.Retained); n > 0 {
		t.Errorf("a run waits for %d revisions that are gone", n)
	}
}

// TestCountsAreOfTheRun: a run that waits makes several passes. The last one finds old revisions
// gone, and the new ones beside those that were relabelled.
func TestCountsAreOfTheRun(t *testing.T) {
	p := &pass{}
	p.plan(decision.Item{Name: "a", Action: decision.Upgrade})
	p.plan(decision.Item{Name: "b", Action: decision.Relabel})
	for _, pass := range []struct {
		phases map[string]revision.Phase
		last   revision.Counts
	}{
		{map[string]revision.Phase{"a": revision.Retained, "b": revision.Succeeded}, revision.Counts{Discovered: 2, Retained: 1, Relabelled: 1}},
		{map[string]revision.Phase{"a": revision.Succeeded}, revision.Counts{Discovered: 3, UpToDate: 2, Succeeded: 1}},
	} {
		for name, phase := range pass.phases {
			at, found := p.find("", name)
			if !found {
				t.Fatalf("no row of %s", name)
			}
			p.rows[at] = p.newRow(revision.Result{Phase: phase, Item: decision.Item{Name: name, Action: p.rows[at].outcome().action}})
		}
		p.tally()
		p.countRun(pass.last)
	}
	if want := (revision.Counts{Discovered: 2, Succeeded: 1, Relabelled: 1}); p.counts != want {
		t.Errorf("%+v, want %+v", p.counts, want)
	}
}

// TestRemedyOfARollbackThatWaits rolls back, and does not upgrade.
func TestRemedyOfARollbackThatWaits(t *testing.T) {
	p := &pass{remedies: remedy.Writer{Program: "godwit", Cluster: " --context=lab"}}
	p.addRollback(revision.Result{Phase: revision.Pending, Item: decision.Item{Namespace: "shop", Name: "web-old", Reason: decision.ReasonRunning}})
	if got, want := p.rows[0].result().Remedy, "godwit revision rollback web-old -n shop --on-running=Hold --context=lab"; !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end in %q", got, want)
	}
	if p.counts.Deferred != 1 {
		t.Errorf("%+v, want it Deferred", p.counts)
	}
}

// TestRollbackOfAllNamespaces: an error in one namespace hides no result of the others. A server that does not answer ends the
// command, and each revision has a row.
func TestRollbackOfAllNamespaces(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}, "", errors.New("no"))
	down := &url.Error{Op: "Get", URL: "https://lab", Err: io.EOF}
	const back, waits, forbidden, unanswered = "RolledBack ", "InUse ", "InUse Forbidden", "InUse Unanswered"
	for name, test := range map[string]struct {
		ctx   context.Context
		fails error
		want  []string // of the namespaces a, b and c
		code  frame.Code
	}{
		"no error":                   {t.Context(), nil, []string{back, back, back}, frame.OK},
		"a list is denied":           {t.Context(), denied, []string{back, forbidden, back}, frame.Partial},
		"the server does not answer": {t.Context(), down, []string{back, unanswered, waits}, frame.Partial},
		"interrupted":                {ended, context.Canceled, []string{back, unanswered, waits}, frame.Partial},
	} {
		r := &rollback{rollbackOptions: &rollbackOptions{all: true}, pass: &pass{}, steps: &steps{console: frame.NewConsole(io.Discard)}}
		for _, namespace := range []string{"a", "b", "c"} {
			r.addItem(decision.Item{Namespace: namespace, Name: "old", Replacement: "new"})
			r.addItem(decision.Item{Namespace: namespace, Name: "other"})
		}
		r.advance = func(_ context.Context, namespace string, requests []revision.Request) ([]revision.Result, error) {
			if namespace == "b" && test.fails != nil {
				return nil, test.fails
			}
			if len(requests) != 1 || requests[0].Name != "old" || !requests[0].Rollback {
				t.Errorf("%s: requests %+v", name, requests)
			}
			return []revision.Result{{Item: decision.Item{Namespace: namespace, Name: "old"}, Phase: revision.RolledBack}}, nil
		}
		r.Run(test.ctx)
		var got []string
		for run := range r.results {
			got = append(got, fmt.Sprintf("%s %s", run.Phase, run.Reason))
		}
		if !slices.Equal(got, test.want) || runCode(r.counts, r.rows) != test.code {
			t.Errorf("%s: %q, code %d, want %q, code %d", name, got, runCode(r.counts, r.rows), test.want, test.code)
		}
		if !errors.Is(r.err, test.fails) || test.fails != nil && !strings.Contains(r.err.Error(), "namespace b: ") {
			t.Errorf("%s: error %v", name, r.err)
		}
	}
}
