package crdreport

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func TestText(t *testing.T) {
	failed := []godwit.Failure{{Namespace: "prod", Name: "a", Finding: godwit.Finding{Reason: decision.ReasonAdmissionDenied, Message: "denied"}}, {Name: "widgets.example.com", Finding: godwit.Finding{Reason: decision.ReasonFailed, Message: "the server is gone"}}}
	cases := map[string]struct {
		reason string
		write  func(io.Writer) error
		want   string
	}{
		"plans": {
			reason: "blocked CRDs come first, clean CRDs are only counted, and unknown numbers are not added up",
			write: func(w io.Writer) error {
				return WritePlans(w, render.Style{}, []Plan{
					{Name: "a.example.com", State: "Clean", StorageVersion: "v1", StoredVersions: []string{"v1"}, Objects: new(int64(12345))},
					{Name: "b.example.com", State: "Ready", StorageVersion: "v2", StoredVersions: []string{"v1", "v2"}, Objects: new(int64(1))},
					{Name: "c.example.com", State: "Ready", StorageVersion: "v2", StoredVersions: []string{"v1", "v2"}},
					{
						Name: "d.example.com", State: "Blocked", Blockers: []render.Problem{{Reason: "NoStorageVersion", Message: "none", Remedy: "set one"}},
						Warnings: []render.Problem{{Reason: "PreflightIncomplete", Message: "one of two", Remedy: "try both"}},
					},
					{
						Name: "f.example.com", State: "Unknown", StorageVersion: "v1", StoredVersions: []string{"v1"},
						Unlisted: &Unlisted{Problem: render.Problem{Reason: "Throttled", Message: "too many requests", Remedy: "plan again"}},
					},
					{
						Name: "g.example.com", State: "Unknown", StorageVersion: "v1", StoredVersions: []string{"v1"},
						Unlisted: &Unlisted{Problem: render.Problem{Reason: "Forbidden", Message: "said for all at once", Remedy: "elsewhere"}},
					},
					{Name: "e.example.com", State: "Clean", StorageVersion: "v1", Warnings: []render.Problem{{Reason: "Some", Message: "a", Remedy: "b"}}},
				}, false)
			},
			want: `
NAME            STATE       STORAGE   STORED   OBJECTS
d.example.com   ✗ Blocked   -         -        ?
f.example.com   ? Unknown   v1        v1       ?
g.example.com   ? Unknown   v1        v1       ?
b.example.com   ● Ready     v2        v1,v2    1
c.example.com   ● Ready     v2        v1,v2    ?
e.example.com   ✓ Clean     v1        -        ?

d.example.com
  ✗ NoStorageVersion: none
    → set one
  ! PreflightIncomplete: one of two
    → try both

f.example.com
  ? Throttled: too many requests
    → plan again

e.example.com
  ! Some: a
    → b

7 customresourcedefinitions: 2 clean, 2 ready, 1 blocked, 2 unknown; at least 1 object to migrate
`,
		},
		"no plans": {
			reason: "a cluster without CRDs prints no table, only the sum",
			write:  func(w io.Writer) error { return WritePlans(w, render.Style{}, nil, false) },
			want:   "\n0 customresourcedefinitions: 0 clean, 0 ready, 0 blocked\n",
		},
		"runs": {
			reason: "failures are named up to a limit and counted beyond it, and CRDs without work are one line",
			write: func(w io.Writer) error {
				return WriteRuns(w, render.Style{}, []Run{
					{
						Name: "widgets.example.com", StorageVersion: "v2", Result: Partial, DurationSeconds: 61.2, Failures: failed,
						Objects: render.ObjectsOf(godwit.Counts{Migrated: 1000, Unchanged: 2, Skipped: 3, Deferred: 1, Failed: 4}),
					},
					{Name: "gadgets.example.com", StorageVersion: "v1", Result: Succeeded, Trimmed: true, DurationSeconds: 0.04},
				}, Folded{Clean: 7, Lacking: 9})
			},
			want: `
NAME                  RESULT        STORAGE   OBJECTS   MIGRATED   UNCHANGED   SKIPPED   DEFERRED   FAILED   TRIMMED   TIME
widgets.example.com   ◐ Partial     v2        1,010     1,000      2           3         1          4        no        1m1s
gadgets.example.com   ✓ Succeeded   v1        0         0          0           0         0          0        yes       0.0s

widgets.example.com
  ✗ prod/a: AdmissionDenied: denied
  ✗ Failed: the server is gone
  … and 4 more objects: -o json names all
7 clean customresourcedefinitions: nothing to do
9 customresourcedefinitions: not begun, because permissions are missing
`,
		},
		"checks": {
			reason: "CRDs that must not be released come first, a note has its own glyph, and a safe CRD without reasons is only in the table",
			write: func(w io.Writer) error {
				note := Finding{Result: "Safe", Problem: render.Problem{Reason: "NotDryRun", Message: "not asked", Remedy: "ask"}}
				return WriteChecks(w, render.Style{}, []Check{
					{Name: "a.example.com", Result: "Safe"},
					{Name: "b.example.com", Result: "Unknown", RemovedVersions: []string{"v1"}, Reasons: []Finding{
						{Result: "Unknown", Problem: render.Problem{Reason: "Forbidden", Message: "alice may not", Remedy: "kubectl"}}, note,
					}},
					{Name: "c.example.com", Result: "Unsafe", RemovedVersions: []string{"v1", "v2"}, Reasons: []Finding{
						{Result: "Unsafe", Problem: render.Problem{Reason: "NoServedVersion", Message: "none", Remedy: "serve"}},
					}},
					{Name: "d.example.com", Result: "Refused", Reasons: []Finding{
						{Result: "Refused", Problem: render.Problem{Reason: "NoStorageVersion", Message: "none", Remedy: "set one"}},
					}},
				})
			},
			want: `
NAME            RESULT      REMOVED
d.example.com   ✗ Refused   -
c.example.com   ✗ Unsafe    v1,v2
b.example.com   ? Unknown   v1
a.example.com   ✓ Safe      -

d.example.com
  ✗ NoStorageVersion: none
    → set one

c.example.com
  ✗ NoServedVersion: none
    → serve

b.example.com
  ? Forbidden: alice may not
    → kubectl
  · NotDryRun: not asked
    → ask

4 customresourcedefinitions: 1 safe, 1 refused, 1 unsafe, 1 unknown
`,
		},
		"results": {
			reason: "a CRD that is not proven has the reason and a remedy",
			write: func(w io.Writer) error {
				return WriteVerifications(w, render.Style{}, []Verification{
					{Name: "a.example.com", StorageVersion: "v2", Objects: 2, ByVersion: map[string]int64{"v2": 2}},
					{Name: "b.example.com", StorageVersion: "v2", Objects: 4, ByVersion: map[string]int64{"v2": 1, "v1": 1}, Unreadable: 2, UnreadableWhy: "x: encrypted", Remedy: "kubectl godwit crd run b.example.com"},
				})
			},
			want: `
NAME            RESULT        STORAGE   OBJECTS   BY VERSION   UNREADABLE
a.example.com   ✓ Proven      v2        2         v2=2         0
b.example.com   ✗ NotProven   v2        4         v1=1,v2=1    2

b.example.com
  ✗ 1 object is not at v2
    → kubectl godwit crd run b.example.com
  ✗ 2 objects can't be read, first x: encrypted
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { rendertest.Compare(t, tc.reason, tc.want, tc.write) })
	}
}

func TestColourAddsNothingButColour(t *testing.T) {
	plans := []Plan{{Name: "a.example.com", State: "Ready"}, {Name: "b.example.com", State: "Clean"}}
	var plain, coloured bytes.Buffer
	if err := WritePlans(&plain, render.Style{}, plans, true); err != nil {
		t.Fatal(err)
	}
	if err := WritePlans(&coloured, render.Style{Color: true}, plans, true); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Errorf("escape codes without colour:\n%q", &plain)
	}
	stripped := strings.NewReplacer("\x1b[33m", "", "\x1b[32m", "", "\x1b[0m", "").Replace(coloured.String())
	if diff := cmp.Diff(plain.String(), stripped); diff != "" || plain.Len() == coloured.Len() {
		t.Errorf("-plain +coloured without escape codes:\n%s", diff)
	}
}
