package crdreport

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// For every outcome of the objects, the columns of a row add up to their number.
func TestColumnsOfRunsAddUp(t *testing.T) {
	all := godwit.Counts{Migrated: 1, Unchanged: 2, Skipped: 3, Gone: 4, Deferred: 5, Failed: 6}
	cases := map[string]godwit.Counts{
		"resumed":    {Migrated: 7, Skipped: 13},
		"deleted":    {Migrated: 7, Gone: 2},
		"conflicts":  {Migrated: 7, Deferred: 3},
		"everything": all,
		"nothing":    {},
	}
	for name, counts := range cases {
		for _, s := range []render.Style{{}, {Wide: true}} {
			var text bytes.Buffer
			runs := []Run{{Name: "a.example.com", Objects: render.ObjectsOf(counts)}, {Name: "b.example.com", Objects: render.ObjectsOf(godwit.Counts{Migrated: 1})}}
			if err := WriteRuns(&text, s, runs, Folded{}); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(text.String(), "\n")
			header := strings.Fields(lines[0])
			from, to := slices.Index(header, "OBJECTS"), slices.Index(header, "TRIMMED")
			for _, line := range lines[1:3] {
				row := strings.Fields(line) // the result and the storage version are a dash
				sum := 0
				for _, field := range row[from+1 : to] {
					n, err := strconv.Atoi(field)
					if err != nil {
						t.Fatal(err)
					}
					sum += n
				}
				if want, _ := strconv.Atoi(row[from]); sum != want {
					t.Errorf("%s, wide %v: the columns of %q add up to %d, and there are %d objects", name, s.Wide, line, sum, want)
				}
			}
		}
	}
}

func planOf(i int, state decision.State, stored ...string) Plan {
	p := Plan{Name: fmt.Sprintf("w%03d.example.com", i), State: string(state), StorageVersion: "v2", StoredVersions: stored}
	if state == decision.StateUnknown {
		p.Unlisted = &Unlisted{Problem: render.Problem{Reason: render.ReasonForbidden.Name, Message: "alice lacks permissions", Remedy: "grant them"}}
	}
	return p
}

// A user with only get and list of CRDs sees a few lines for 300 of them, and a row for each
// CRD that needs an action.
func TestManyPlansWithoutPermissionsAreFolded(t *testing.T) {
	var plans []Plan
	for i := range 300 {
		p := planOf(i, decision.StateUnknown, "v2")
		if i == 7 {
			p = planOf(i, decision.Ready, "v1", "v2")
			p.Warnings = []render.Problem{{Reason: render.ReasonForbidden.Name, Message: "a run needs permissions", Remedy: "grant them"}}
		}
		plans = append(plans, p)
	}
	folded := `NAME               STATE     STORAGE   STORED   OBJECTS
w007.example.com   ● Ready   v2        v1,v2    ?

299 customresourcedefinitions not shown, because permissions are missing; -o wide shows all
300 customresourcedefinitions: 0 clean, 1 ready, 0 blocked, 299 unknown; how many objects to migrate is unknown
`
	for name, test := range map[string]struct {
		style render.Style
		all   bool
		plans []Plan
		want  string // empty: a row for each
	}{
		"many":       {plans: plans, want: folded},
		"wide":       {plans: plans, style: render.Style{Wide: true}},
		"named":      {plans: plans, all: true},
		"only a few": {plans: plans[:ManyLacking]},
	} {
		var text bytes.Buffer
		if err := WritePlans(&text, test.style, test.plans, test.all); err != nil {
			t.Fatal(err)
		}
		if rows := strings.Count(text.String(), ".example.com"); test.want == "" && rows != len(test.plans) {
			t.Errorf("%s: %d rows, want %d", name, rows, len(test.plans))
		}
		if diff := cmp.Diff(test.want, text.String()); test.want != "" && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// If some objects were not counted, the sum does not say that there are none.
func TestSumIsNotZeroWhileSomeObjectsAreNotCounted(t *testing.T) {
	counted := func(n int64, p Plan) Plan { p.Objects = &n; return p }
	ready := planOf(0, decision.Ready, "v1", "v2")
	for name, test := range map[string]struct {
		plans []Plan
		want  string
	}{
		"none counted":       {[]Plan{ready}, "; how many objects to migrate is unknown"},
		"none, and unknown":  {[]Plan{counted(0, ready), planOf(1, decision.StateUnknown, "v2")}, "; how many objects to migrate is unknown"},
		"none, and blocked":  {[]Plan{counted(0, ready), planOf(1, decision.Blocked, "v1", "v2")}, "; how many objects to migrate is unknown"},
		"some, and blocked":  {[]Plan{counted(3, ready), planOf(1, decision.Blocked, "v1", "v2")}, "; 3 objects to migrate"},
		"some, and a ?":      {[]Plan{counted(3, ready), ready}, "; at least 3 objects to migrate"},
		"all counted":        {[]Plan{counted(3, ready), counted(4, ready)}, "; 7 objects to migrate"},
		"counted, and none":  {[]Plan{counted(0, ready)}, "; 0 objects to migrate"},
		"nothing to migrate": {[]Plan{planOf(0, decision.Clean, "v2")}, "blocked"},
	} {
		if got := planSum(test.plans); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %q, want it to end in %q", name, got, test.want)
		}
	}
}
