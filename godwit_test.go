package godwit_test

import (
	"testing"

	"github.com/godwit-dev/godwit"
)

func TestCountsMissNoObject(t *testing.T) {
	outcomes := []godwit.Outcome{
		godwit.Migrated, godwit.Unchanged, godwit.Skipped, godwit.Gone, godwit.Deferred, godwit.Failed,
		0, 200, // an action's bug must show up as a failure, not as a smaller total
	}
	var c godwit.Counts
	for _, o := range outcomes {
		c.Add(o)
	}
	if got, want := c.Total(), int64(len(outcomes)); got != want {
		t.Errorf("Total() = %d, want %d", got, want)
	}
	if got, want := c.Failed, int64(3); got != want {
		t.Errorf("Failed = %d, want %d", got, want)
	}
}

func TestSettledNeedsNeitherFailedNorDeferred(t *testing.T) {
	cases := map[string]struct {
		counts godwit.Counts
		want   bool
	}{
		"nothing was there":       {godwit.Counts{}, true},
		"every object has an end": {godwit.Counts{Migrated: 1, Unchanged: 1, Skipped: 1, Gone: 1}, true},
		"a failure is work left":  {godwit.Counts{Migrated: 9, Failed: 1}, false},
		"a deferral is work left": {godwit.Counts{Migrated: 9, Deferred: 1}, false},
	}
	for reason, tc := range cases {
		if got := tc.counts.Settled(); got != tc.want {
			t.Errorf("%s: Settled() = %v, want %v", reason, got, tc.want)
		}
	}
}

func TestOutcomeNamesItself(t *testing.T) {
	if got := godwit.Unchanged.String(); got != "Unchanged" {
		t.Errorf("Unchanged prints as %q", got)
	}
	if got := godwit.Outcome(0).String(); got != "Outcome(0)" {
		t.Errorf("the zero outcome prints as %q", got)
	}
}
