package revisionreport

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

func TestRevisionText(t *testing.T) {
	vm := reference.Owner{Kind: "VirtualMachine", Name: "web"}
	until := time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC)
	items := []decision.Item{
		{Namespace: "shop", Name: "a", Owner: vm, Version: "v2", Form: "Object", Target: "v2", Action: decision.UpToDate},
		{Namespace: "shop", Name: "b", Owner: vm, Version: "v1", Form: "Object", Target: "v2", Action: decision.Upgrade},
		{Namespace: "shop", Name: "c", Version: "v1", Form: "Spec", Target: "v2", Action: decision.Unreferenced},
		{Namespace: "shop", Name: "d", Owner: vm, Action: decision.Blocked, Reason: decision.ReasonSourceGone, Message: "it is gone"},
		{Namespace: "shop", Name: "e", Owner: vm, Version: "v1", Form: "Object", Target: "v2", Action: decision.Upgrade, Reason: decision.ReasonRetained, Replacement: "e2", Until: until},
		{
			Namespace: "shop", Name: "f", Owner: vm, Version: "v1", Form: "Object", Target: "v2", Action: decision.Upgrade, Replacement: "f2",
			References: []decision.ReferenceStatus{{Kind: "ControllerRevision", Name: "start", Path: "/data", State: decision.ReferenceFixed}},
		},
		{Namespace: "shop", Name: "g", Owner: vm, Version: "v1", Form: "Object", Target: "v2", Action: decision.Deferred, Reason: decision.ReasonRunning, Message: "it runs"},
	}
	for n := range items {
		if items[n].Reason != decision.ReasonSourceGone {
			items[n].UID = "5d0c2cf4"
		}
	}
	inventory := &revision.Inventory{Droppable: []string{"v0"}, InUse: []revision.VersionUse{{Version: "v1", UsedBy: []string{"controllerrevision shop/b"}, Count: 6}}}
	ran := reportOf([]revision.Result{
		{Item: items[4], Phase: revision.Retained},
		{Item: items[3]},
		{Item: decision.Item{Namespace: "shop", Name: "b", Owner: vm, Reason: decision.ReasonRefused, Message: "denied", Action: decision.Upgrade}, Phase: revision.Failed},
	})
	ran.Counts = revision.Counts{Discovered: 7, Retained: 1, Blocked: 1, Failed: 1, UpToDate: 1}
	cases := map[string]struct {
		reason string
		write  func(io.Writer) error
		want   string
	}{
		"a plan": {
			reason: "revisions that need the user come first, revisions that are up to date are only counted, and a retained revision has no remedy",
			write: func(w io.Writer) error {
				return WritePlan(w, render.Style{}, NewPlanList(items, inventory, remedy.Writer{Program: "godwit"}))
			},
			want: `
VERSION   FORM     COUNT
v1        Object   4
v1        Spec     1
v2        Object   1

STATE            NAMESPACE   OWNER                VERSION   TARGET   REASON       REVISION
✗ Blocked        shop        VirtualMachine/web   -         -        SourceGone   d
◐ Deferred       shop        VirtualMachine/web   v1        v2       Running      g
◐ InUse          shop        VirtualMachine/web   v1        v2       -            f
● Upgrade        shop        VirtualMachine/web   v1        v2       -            b
✓ Retained       shop        VirtualMachine/web   v1        v2       Retained     e
· Unreferenced   shop        -                    v1        v2       -            c

shop/d
  ✗ SourceGone: it is gone
    → 1. restore the revision from a backup
      2. have its referrers name a ControllerRevision that exists

shop/g
  ! Running: it runs
    → 1. stop it
      2. upgrade while it runs, and keep the old revision until it stops:
           godwit revision run -n shop --on-running=Hold

✓ v0: no revision is stored at it; you can drop it
● v1: still used by 6 objects
    controllerrevision shop/b
    … and 5 more

7 revisions, of which 1 is missing: 1 up to date, 1 to upgrade, 1 in use, 1 retained, 1 deferred, 1 blocked, 1 unreferenced
`,
		},
		"nothing": {
			reason: "a namespace without revisions prints no tables, only the sum",
			write:  func(w io.Writer) error { return WritePlan(w, render.Style{}, NewPlanList(nil, nil, remedy.Writer{})) },
			want:   "\n0 revisions: 0 up to date\n",
		},
		"a run": {
			reason: "each problem has a row, and other revisions are counted",
			write:  func(w io.Writer) error { return WriteRun(w, render.Style{}, ran) },
			want: `
RESULT      NAMESPACE   OWNER                REASON       REVISION   NEW REVISION
✗ Blocked   shop        VirtualMachine/web   SourceGone   d          -
✗ Failed    shop        VirtualMachine/web   Refused      b          -

shop/d
  ✗ SourceGone: it is gone
    → 1. restore the revision from a backup
      2. have its referrers name a ControllerRevision that exists

shop/b
  ✗ Refused: denied
    → change what the answer names, as a field of the object, a policy, a webhook, a quota or a missing permission, and run again

7 revisions: 1 up to date, 1 upgraded, the old one retained, 1 blocked, 1 failed, in 0.0s
`,
		},
		"a run, wide": {
			reason: "a wide table has a row for each revision",
			write: func(w io.Writer) error {
				wide := ran
				wide.Items = Runs(slices.Values([]Run{NewRun(revision.Result{Item: items[4], Phase: revision.Retained}, remedy.Writer{})}))
				return WriteRun(w, render.Style{Wide: true}, wide)
			},
			want: `
RESULT       NAMESPACE   OWNER                REASON     REVISION   NEW REVISION   UNTIL
✓ Retained   shop        VirtualMachine/web   Retained   e          e2             ` + until.Local().Format("2006-01-02 15:04 MST") + `

7 revisions: 1 up to date, 1 upgraded, the old one retained, 1 blocked, 1 failed, in 0.0s
`,
		},
		"an overdue deletion": {
			reason: "a retained revision has a row and a remedy if it is kept for another reason than its retention",
			write: func(w io.Writer) error {
				late := items[4]
				late.Reason, late.Message = decision.ReasonRateLimited, "its retention is over"
				r := reportOf([]revision.Result{{Item: items[4], Phase: revision.Retained}, {Item: late, Phase: revision.Retained}})
				r.Counts = revision.Counts{Discovered: 2, Retained: 2}
				return WriteRun(w, render.Style{}, r)
			},
			want: `
RESULT       NAMESPACE   OWNER                REASON        REVISION   NEW REVISION
✓ Retained   shop        VirtualMachine/web   RateLimited   e          e2

shop/e
  ! RateLimited: its retention is over
    → run again when fewer requests are under way, or with a higher maxWritesPerSecond

2 revisions: 2 upgraded, the old one retained, in 0.0s
`,
		},
		"no status": {
			reason: "empty output would not show that there is no upgrade",
			write:  func(w io.Writer) error { return WriteStatus(w, render.Style{}, NewPlanList(nil, nil, remedy.Writer{})) },
			want:   "\nno upgrade is in progress or pending\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { rendertest.Compare(t, tc.reason, tc.want, tc.write) })
	}
}

// TestRevisionState: a plan, which knows no phase, and a run have the same word for the same
// state.
func TestRevisionState(t *testing.T) {
	upgrade, replaced := decision.Item{Action: decision.Upgrade}, decision.Item{Action: decision.Upgrade, Replacement: "new"}
	retained := decision.Item{Action: decision.Upgrade, Reason: decision.ReasonRetained, Replacement: "new"}
	running := decision.Item{Action: decision.Deferred, Reason: decision.ReasonRunning}
	blocked := decision.Item{Action: decision.Blocked, Reason: decision.ReasonLossy}
	cases := map[string]struct {
		result revision.Result
		want   State
	}{
		"up to date":                          {revision.Result{Item: decision.Item{Action: decision.UpToDate}}, StateUpToDate},
		"no reference":                        {revision.Result{Item: decision.Item{Action: decision.Unreferenced}}, StateUnreferenced},
		"to be begun":                         {revision.Result{Item: upgrade}, StateUpgrade},
		"not read":                            {revision.Result{Item: upgrade, Phase: revision.Analyzing}, StateUpgrade},
		"nothing written":                     {revision.Result{Item: upgrade, Phase: revision.Converted}, StateUpgrade},
		"not come to":                         {revision.Result{Item: upgrade, Phase: revision.Pending}, StateUpgrade},
		"to be labelled":                      {revision.Result{Item: decision.Item{Action: decision.Relabel}}, StateRelabel},
		"could not be labelled":               {revision.Result{Item: decision.Item{Action: decision.Relabel}, Phase: revision.Pending}, StateRelabel},
		"begun, and a reference is left":      {revision.Result{Item: replaced}, StateInUse},
		"interrupted":                         {revision.Result{Item: replaced, Phase: revision.Created}, StateInUse},
		"in use":                              {revision.Result{Item: replaced, Phase: revision.InUse}, StateInUse},
		"begun, and now the machine runs":     {revision.Result{Item: decision.Item{Action: decision.Deferred, Replacement: "new"}}, StateInUse},
		"no reference is left":                {revision.Result{Item: retained}, StateRetained},
		"retained by this run":                {revision.Result{Item: retained, Phase: revision.Retained}, StateRetained},
		"not noted that no reference is left": {revision.Result{Item: replaced, Phase: revision.Repointed}, StateRetained},
		"a machine runs":                      {revision.Result{Item: running}, StateDeferred},
		"a machine has begun to run":          {revision.Result{Item: running, Phase: revision.Converted}, StateDeferred},
		"a rollback waits for a machine":      {revision.Result{Item: decision.Item{Action: decision.Upgrade, Reason: decision.ReasonRunning, Replacement: "new"}, Phase: revision.Pending}, StateDeferred},
		"to be repaired":                      {revision.Result{Item: blocked}, StateBlocked},
		"found to be repaired":                {revision.Result{Item: blocked, Phase: revision.Failed}, StateBlocked},
		"refused":                             {revision.Result{Item: upgrade, Phase: revision.Failed}, StateFailed},
		"rolled back":                         {revision.Result{Item: upgrade, Phase: revision.RolledBack}, StateRolledBack},
		"was rolled back":                     {revision.Result{Item: decision.Item{Action: decision.Upgrade, Reason: decision.ReasonRolledBack, Replacement: "new"}}, StateRolledBack},
		"removed":                             {revision.Result{Item: retained, Phase: revision.Succeeded}, StateSucceeded},
	}
	for name, tc := range cases {
		if got := stateOf(tc.result); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func reportOf(results []revision.Result) RunReport {
	var items []Run
	for _, one := range results {
		items = append(items, NewRun(one, remedy.Writer{Program: "godwit"}))
	}
	return NewRunReport(slices.Values(items))
}

// TestReportIsEncodedItemByItem: the text is that of the whole document.
func TestReportIsEncodedItemByItem(t *testing.T) {
	t.Parallel()
	for name, results := range map[string][]revision.Result{
		"none": nil,
		"one":  {{Item: decision.Item{Namespace: "shop", Name: "a", Message: `a "b" <c> & [] "items": []`}, Phase: revision.InUse}},
		"two":  {{Item: decision.Item{Namespace: "shop", Name: "a"}, Phase: revision.Succeeded}, {Item: decision.Item{Namespace: "shop", Name: "b"}, Phase: revision.Failed}},
	} {
		r := reportOf(results)
		r.DroppableVersions, r.DurationSeconds = []string{"v1"}, 1.5
		type whole RunReport // without EncodeJSON
		var got, want bytes.Buffer
		if err := errors.Join(render.Encode(&got, r), render.Encode(&want, whole(r))); err != nil || got.String() != want.String() {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, got.String(), want.String())
		}
	}
}
