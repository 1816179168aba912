package crd

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

func TestCodesOfWhatIsUnknown(t *testing.T) {
	unknown := finding{name: "a.example.com", plan: decision.Plan{State: decision.StateUnknown}}
	clean := finding{name: "b.example.com", plan: decision.Plan{State: decision.Clean}}
	blocked := finding{name: "c.example.com", plan: decision.Plan{State: decision.Blocked}}
	if got := planCode([]finding{clean, unknown, blocked}); got != frame.Error {
		t.Errorf("plan ends with %d, want %d: what is unknown outweighs what is known", got, frame.Error)
	}
	items := []crdreport.Run{{Name: "b.example.com", Result: crdreport.NoChange}, {Name: "a.example.com", Result: crdreport.Unknown}}
	if got := runCode(items, []finding{clean, unknown}); got != frame.Error {
		t.Errorf("run ends with %d, want %d", got, frame.Error)
	}
}

// TestCodeOfAPart: 3 means that nothing was written.
func TestCodeOfAPart(t *testing.T) {
	run := func(name string, r crdreport.Result) crdreport.Run { return crdreport.Run{Name: name, Result: r} }
	for name, test := range map[string]struct {
		items []crdreport.Run
		want  frame.Code
	}{
		"one blocked":                 {[]crdreport.Run{run("a", crdreport.Blocked), run("b", crdreport.NoChange)}, frame.Refused},
		"one blocked, one migrated":   {[]crdreport.Run{run("a", crdreport.Blocked), run("b", crdreport.Succeeded)}, frame.Partial},
		"one gone, one migrated":      {[]crdreport.Run{run("a", crdreport.Succeeded), run("b", crdreport.Terminating)}, frame.Partial},
		"all migrated":                {[]crdreport.Run{run("a", crdreport.Succeeded)}, frame.OK},
		"one unknown, one is blocked": {[]crdreport.Run{run("a", crdreport.Succeeded), run("b", crdreport.Blocked), run("c", crdreport.Unknown)}, frame.Error},
	} {
		if got := runCode(test.items, nil); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestPassageResult(t *testing.T) {
	complete := func(c godwit.Counts) decision.Report {
		return decision.Report{Storage: walk.Report{Counts: c, Complete: true}}
	}
	broken := errors.New("the server is gone")
	throttled := fmt.Errorf("migrate widgets: %w", &decision.UnlistedError{Finding: godwit.Finding{Reason: decision.ReasonThrottled}})
	cases := map[string]struct {
		reason string
		crdRun
		want crdreport.Result
	}{
		"all migrated":      {"the usual end", crdRun{report: complete(godwit.Counts{Migrated: 2}), wrote: true}, crdreport.Succeeded},
		"no objects":        {"there was only the list to trim", crdRun{report: complete(godwit.Counts{})}, crdreport.Succeeded},
		"clean":             {"the library made no pass", crdRun{}, crdreport.NoChange},
		"one failed":        {"others did not", crdRun{report: complete(godwit.Counts{Migrated: 1, Failed: 1}), wrote: true}, crdreport.Partial},
		"one deferred":      {"it is not done", crdRun{report: complete(godwit.Counts{Deferred: 1})}, crdreport.Partial},
		"trimmed meanwhile": {"another client finished the migration", crdRun{wrote: true}, crdreport.Succeeded},
		"error at once":     {"nothing was written", crdRun{err: broken}, crdreport.Failed},
		"error on the way":  {"what was written stays written", crdRun{err: broken, wrote: true}, crdreport.Partial},
		"blocked":           {"refused before the first write", crdRun{err: &decision.BlockedError{}}, crdreport.Blocked},
		"blocked later":     {"something was written, so it was not refused", crdRun{err: &decision.BlockedError{}, wrote: true}, crdreport.Partial},
		"gone":              {"it was deleted since it was listed", crdRun{err: decision.ErrNotFound}, crdreport.Terminating},
		"not listed":        {"nothing is known, and nothing was written", crdRun{err: throttled}, crdreport.Unknown},
		"not readable":      {"a user has to act before a run", crdRun{err: &decision.UnlistedError{Finding: godwit.Finding{Reason: decision.ReasonUnreadableObjects}}}, crdreport.Blocked},
		"not listed later":  {"something was written, and the rest is unknown", crdRun{err: throttled, wrote: true}, crdreport.Partial},
		"dry run, client":   {"no write was sent", crdRun{dryRun: true}, crdreport.Planned},
		"dry run":           {"it writes nothing", crdRun{dryRun: true, starts: true, report: complete(godwit.Counts{Skipped: 2})}, crdreport.Accepted},
		"dry run refused":   {"what the run would end with", crdRun{dryRun: true, report: complete(godwit.Counts{Skipped: 1, Failed: 1})}, crdreport.Partial},
	}
	for name, tc := range cases {
		tc.endPass(tc.report, tc.err)
		if got := tc.result(); got != tc.want {
			t.Errorf("%s: result() = %s, want %s: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestBareName(t *testing.T) {
	for given, want := range map[string]string{
		"a.example.com": "a.example.com", "crd/a.example.com": "a.example.com", "crds/a.example.com": "a.example.com",
		"customresourcedefinition.apiextensions.k8s.io/a.example.com": "a.example.com", "pod/a": "pod/a",
	} {
		if got := bareName(given); got != want {
			t.Errorf("bareName(%q) = %q, want %q", given, got, want)
		}
	}
}

// stubPace waits so long for the byte budget.
type stubPace time.Duration

func (s stubPace) WaitsForBytes() time.Duration { return time.Duration(s) }

func TestViewText(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	objects := int64(2000)
	moved := func(c godwit.Counts, remaining int64) func(*view) {
		return func(v *view) {
			v.update(decision.Report{Storage: walk.Report{Counts: godwit.Counts{Skipped: c.Skipped, Migrated: 1}}}, start)
			v.update(decision.Report{Storage: walk.Report{Counts: c, Remaining: remaining}}, start)
		}
	}
	servers := []decision.Server{{Name: "apiserver-a"}}
	cases := map[string]struct {
		reason  string
		plan    decision.Plan
		happens func(*view)
		after   time.Duration
		want    string
	}{
		"begun":     {"the plan knows how many", decision.Plan{Objects: &objects}, func(*view) {}, 0, "0 of 2,000 objects"},
		"uncounted": {"no number is made up", decision.Plan{}, func(*view) {}, 0, "listing objects"},
		"a list that fails": {"the webhook is named while the run waits", decision.Plan{}, func(v *view) {
			v.update(decision.Report{Storage: walk.Report{Remaining: -1}, Waiting: `conversion webhook for a/v1, Kind=A failed: Post "https://b.c.svc"`}, start)
		}, 0, `listing objects, trying again after: conversion webhook for a/v1, Kind=A failed: Post "https://b.c.svc"`},
		"on its way":    {"rate and rest", decision.Plan{Objects: &objects}, moved(godwit.Counts{Migrated: 500}, 1400), 5 * time.Second, "500 of 2,000 objects, 100/s, 15s left"},
		"grown":         {"more objects than planned for", decision.Plan{Objects: &objects}, moved(godwit.Counts{Migrated: 500}, 2500), 0, "500 of 3,000 objects"},
		"resumed":       {"what was skipped says nothing of the rate", decision.Plan{Objects: &objects, Resumes: true}, moved(godwit.Counts{Skipped: 1000, Migrated: 500}, 400), 5 * time.Second, "1,500 of 2,000 objects, 100/s, 5s left"},
		"with failures": {"they are not to be missed", decision.Plan{}, moved(godwit.Counts{Migrated: 1, Failed: 2}, -1), 0, "3 objects, 2 failed"},
		"settling": {"the time counts down", decision.Plan{}, func(v *view) {
			v.settling(&decision.NotSettledError{Wait: 40 * time.Second}, start)
		}, 10 * time.Second, "settling, 30s left"},
		"for a server": {"when the API server renews its lease is not known", decision.Plan{}, func(v *view) {
			v.settling(&decision.NotSettledError{Servers: servers}, start)
		}, time.Second, "waiting for 1 API server to adopt the storage version"},
		"for a stale lease": {"that may be for ever", decision.Plan{}, func(v *view) {
			v.settling(&decision.NotSettledError{Servers: servers, Stale: servers}, start)
		}, time.Second, "waiting for an API server with a stale lease"},
	}
	for name, tc := range cases {
		v := &view{plan: tc.plan, pace: stubPace(0)}
		tc.happens(v)
		if got := v.text(start.Add(tc.after)); got != tc.want {
			t.Errorf("%s: text() = %q, want %q: %s", name, got, tc.want, tc.reason)
		}
	}
}

// TestViewTextNamesTheByteBudget instead of guessing how long the rest takes.
func TestViewTextNamesTheByteBudget(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0:                                 "1 of 2 objects, 1/s, 1s left",
		time.Millisecond:                  "1 of 2 objects, 1/s, waiting 1s for --max-bytes-per-5m",
		200*time.Second + time.Second/100: "1 of 2 objects, 1/s, waiting 3m20s for --max-bytes-per-5m",
	} {
		now := time.Now()
		v := &view{pace: stubPace(wait)}
		v.update(decision.Report{Storage: walk.Report{Counts: godwit.Counts{Migrated: 1}, Remaining: 1}}, now)
		if got := v.text(now.Add(time.Second)); got != want {
			t.Errorf("while the budget makes it wait %v, text() = %q, want %q", wait, got, want)
		}
	}
}
