package report

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/revision"
)

func TestRevisionText(t *testing.T) {
	vm := revision.Owner{Kind: "VirtualMachine", Name: "web"}
	until := time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC)
	items := []revision.Item{
		{Namespace: "shop", Name: "a", Owner: vm, Version: "v2", Form: "Object", Target: "v2", Action: revision.UpToDate},
		{Namespace: "shop", Name: "b", Owner: vm, Version: "v1", Form: "Object", Target: "v2", Action: revision.Upgrade},
		{Namespace: "shop", Name: "c", Version: "v1", Form: "Spec", Target: "v2", Action: revision.Orphan},
		{Namespace: "shop", Name: "d", Owner: vm, Action: revision.Blocked, Reason: "SourceGone", Message: "it is gone"},
		{Namespace: "shop", Name: "e", Owner: vm, Version: "v1", Form: "Object", Target: "v2", Action: revision.Upgrade, Reason: "Retained", Successor: "e2", Until: until},
		{
			Namespace: "shop", Name: "f", Owner: vm, Version: "v1", Form: "Object", Target: "v2", Action: revision.Upgrade, Successor: "f2",
			Referrers: []revision.Place{{Kind: "ControllerRevision", Name: "start", Path: "/data", State: revision.PlaceFixed}},
		},
		{Namespace: "shop", Name: "g", Owner: vm, Version: "v1", Form: "Object", Target: "v2", Action: revision.Deferred, Reason: "Running", Message: "it runs"},
	}
	survey := &revision.Survey{Droppable: []string{"v0"}, Held: []revision.HeldVersion{{Version: "v1", By: []string{"controllerrevision shop/b"}, Count: 6}}}
	cases := map[string]struct {
		reason string
		write  func(io.Writer) error
		want   string
	}{
		"a plan": {
			reason: "what somebody has to look at comes first, what is up to date is only counted, and nobody is told that he has to do something about what is retained",
			write:  func(w io.Writer) error { return WriteRevisionPlan(w, Style{}, NewRevisionPlanList(items, survey)) },
			want: `
VERSION   FORM     COUNT
v1        Object   4
v1        Spec     1
v2        Object   1

ACTION       NAMESPACE   OWNER                VERSION   TARGET   REASON       REVISION
✗ Blocked    shop        VirtualMachine/web   -         -        SourceGone   d
◐ Deferred   shop        VirtualMachine/web   v1        v2       Running      g
● Upgrade    shop        VirtualMachine/web   v1        v2       -            b
● Upgrade    shop        VirtualMachine/web   v1        v2       Retained     e
● Upgrade    shop        VirtualMachine/web   v1        v2       -            f
· Orphan     shop        -                    v1        v2       -            c

shop/d
  ✗ SourceGone: it is gone

shop/g
  ! Running: it runs
    → --on-running=Hold upgrades while it runs, and keeps the old revision until it stops

✓ v0: nothing is left at it, it can be dropped
● v1: 6 hold it
    controllerrevision shop/b
    … and 5 more

7 revisions: 1 up to date, 2 to upgrade, 1 retained, 1 deferred, 1 blocked, 1 orphaned
`,
		},
		"nothing": {
			reason: "a namespace without revisions has no tables, and says so",
			write:  func(w io.Writer) error { return WriteRevisionPlan(w, Style{}, NewRevisionPlanList(nil, nil)) },
			want:   "\n0 revisions: 0 up to date\n",
		},
		"a run": {
			reason: "what is not further says why, what is retained says it in the table",
			write: func(w io.Writer) error {
				r := NewRevisionRunReport([]revision.Result{
					{Item: items[4], Phase: revision.Retained},
					{Item: items[3], Phase: revision.Failed},
				})
				r.Counts = revision.Counts{Discovered: 7, Retained: 1, Blocked: 1, UpToDate: 1}
				return WriteRevisionRun(w, Style{}, r)
			},
			want: `
RESULT       NAMESPACE   OWNER                REASON       REVISION   NEW REVISION
✓ Retained   shop        VirtualMachine/web   Retained     e          e2
✗ Failed     shop        VirtualMachine/web   SourceGone   d          -

shop/d
  ✗ SourceGone: it is gone

7 revisions: 1 up to date, 1 upgraded, the old one retained, 1 blocked, in 0.0s
`,
		},
		"no status": {
			reason: "silence would leave open whether anything was asked",
			write:  func(w io.Writer) error { return WriteRevisionStatus(w, Style{}, NewRevisionPlanList(nil, nil)) },
			want:   "\nno upgrade is under way or to be begun\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := bytes.NewBufferString("\n")
			if err := tc.write(out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRevisionState(t *testing.T) {
	cases := map[string]struct {
		item revision.Item
		want RevisionState
	}{
		"up to date":                      {revision.Item{Action: revision.UpToDate}, ""},
		"nobody's":                        {revision.Item{Action: revision.Orphan}, ""},
		"to be begun":                     {revision.Item{Action: revision.Upgrade}, StatePending},
		"to be labelled":                  {revision.Item{Action: revision.Relabel}, StatePending},
		"begun, and somebody refers":      {revision.Item{Action: revision.Upgrade, Successor: "new"}, StateHeld},
		"begun, and now the machine runs": {revision.Item{Action: revision.Deferred, Successor: "new"}, StateHeld},
		"given up":                        {revision.Item{Action: revision.Upgrade, Reason: revision.ReasonRetained, Successor: "new"}, StateRetained},
		"a machine runs":                  {revision.Item{Action: revision.Deferred}, StateDeferred},
		"to be repaired":                  {revision.Item{Action: revision.Blocked}, StateBlocked},
	}
	for name, tc := range cases {
		if got := NewRevisionPlanList([]revision.Item{tc.item}, nil).Items[0].State(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
