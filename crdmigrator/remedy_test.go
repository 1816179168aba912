package crdmigrator

import (
	"strings"
	"testing"

	"github.com/godwit-dev/godwit"
)

// TestRemediesOfABlockedPlan: a run that tries every object is refused like any other
// while something stands in its way, unless that is what the dry run is about.
func TestRemediesOfABlockedPlan(t *testing.T) {
	const try = "try every object: godwit crd run a.example.com --dry-run=server"
	incomplete := []godwit.Warning{{Reason: ReasonPreflightIncomplete, Remedy: try}, {Reason: ReasonAdmissionMutates, Remedy: "go on"}}
	cases := map[string]struct {
		blockers []string
		want     string
	}{
		"nothing":               {nil, try},
		"a denial":              {[]string{ReasonAdmissionDenied}, try},
		"a server that waits":   {[]string{ReasonServerSilent}, try},
		"another migrator":      {[]string{ReasonMigrationInProgress}, "first do what MigrationInProgress asks for, then " + try},
		"two permissions, more": {[]string{ReasonForbidden, ReasonForbidden, ReasonCRDKeepsChanging}, "first do what CRDKeepsChanging and Forbidden asks for, then " + try},
	}
	for name, tc := range cases {
		var blockers []godwit.Blocker
		for _, reason := range tc.blockers {
			blockers = append(blockers, godwit.Blocker{Reason: reason})
		}
		got := afterBlockers(incomplete, blockers)
		if got[0].Remedy != tc.want || got[1].Remedy != "go on" {
			t.Errorf("%s: %q, want %q", name, got[0].Remedy, tc.want)
		}
		if incomplete[0].Remedy != try {
			t.Fatalf("%s: the warnings that were given are changed", name)
		}
	}
}

// TestUnserveTestsTheNames: the list of versions may change before the command runs.
func TestUnserveTestsTheNames(t *testing.T) {
	f := CheckFacts{Next: widgetCRD(), Live: widgetCRD(), Objects: new(int64(3)), Stale: 1, StaleExample: "w", StaleVersions: []string{"v1"}}
	f.Next.Spec.Versions = f.Next.Spec.Versions[1:]
	reasons := checkObjects(f)
	if len(reasons) != 1 {
		t.Fatalf("%d reasons", len(reasons))
	}
	for _, want := range []string{
		"kubectl patch crd " + f.Live.Name + " --type=json -p '[",
		`{"op": "test", "path": "/spec/versions/0/name", "value": "v1"}, {"op": "replace", "path": "/spec/versions/0/served", "value": false}`,
	} {
		if !strings.Contains(reasons[0].Remedy, want) {
			t.Errorf("the remedy %q lacks %q", reasons[0].Remedy, want)
		}
	}
}

// TestManagedFieldsNameFewerVersionsThanAreRemoved: only versions that entries still
// name are said, and only these are to be unserved.
func TestManagedFieldsNameFewerVersionsThanAreRemoved(t *testing.T) {
	f := CheckFacts{Next: widgetCRD(), Live: widgetCRD(), Objects: new(int64(3)), Stale: 1, StaleExample: "w", StaleVersions: []string{"v1"}}
	v0 := f.Live.Spec.Versions[0]
	v0.Name = "v0"
	f.Live.Spec.Versions = append(f.Live.Spec.Versions, v0)
	f.Next.Spec.Versions = f.Next.Spec.Versions[1:]
	r := checkObjects(f)[0]
	if !strings.Contains(r.Message, ", name v1: ") || strings.Contains(r.Remedy, "v0") {
		t.Errorf("message %q, remedy %q: want them to name v1 alone", r.Message, r.Remedy)
	}
}
