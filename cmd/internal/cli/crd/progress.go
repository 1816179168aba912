package crd

import (
	"fmt"
	"sync"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// display tells a person how a run goes, on stderr.
type display interface {
	begin(crdmigrator.Plan)
	settling(*crdmigrator.NotSettledError)
	moved(crdmigrator.Report)
	note(string)
	end(crdreport.Run)
}

// pace says what holds a run up.
type pace interface{ WaitsForBytes() time.Duration }

func newDisplay(c *cli.Console, dryRun bool, p pace) display {
	if c.Terminal {
		return &bar{console: c, dryRun: dryRun, pace: p}
	}
	return &lines{console: c, dryRun: dryRun, pace: p}
}

// endText is the last line about a definition.
func endText(r crdreport.Run, dryRun bool) string {
	if dryRun {
		return fmt.Sprintf("%s: dry run, nothing was written: %s accepted, %s refused", r.Name,
			report.Count(r.Objects.Skipped, "object", "objects"), report.Number(r.Objects.Failed))
	}
	return r.Name + ": " + crdreport.Summary(r)
}

// view is what is known about the definition that is being migrated. The
// migration writes it, the drawing reads it.
type view struct {
	mu       sync.Mutex
	plan     crdmigrator.Plan
	pace     pace
	unsettle *crdmigrator.NotSettledError // nil once writing has begun
	seen     time.Time                    // when that was said
	report   crdmigrator.Report
	first    time.Time // when objects began to be written
	before   int64     // done by then: a resumed run skips fast
}

func (v *view) settling(e *crdmigrator.NotSettledError, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unsettle, v.seen = e, now
}

func (v *view) moved(r crdmigrator.Report, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unsettle, v.report = nil, r
	counts := r.Storage.Counts
	if v.first.IsZero() && (!v.plan.Resumes || counts.Total() > counts.Skipped) {
		v.first, v.before = now, counts.Total()-1
	}
}

// counts are the objects done and all there are, 0 when that is unknown.
func (v *view) counts() (done, total int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.total()
}

func (v *view) total() (done, total int64) {
	done = v.report.Storage.Counts.Total()
	if v.plan.Objects != nil {
		total = *v.plan.Objects
	}
	if done > 0 && v.report.Storage.Remaining >= 0 { // what is under way is in neither number
		total = max(total, done+v.report.Storage.Remaining)
	}
	return done, total
}

// text says in a few words how it stands.
func (v *view) text(now time.Time) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unsettle != nil {
		return waitingText(v.unsettle, now.Sub(v.seen))
	}
	done, total := v.total()
	text := report.Number(done) + " objects"
	switch {
	case total > 0:
		text = report.Number(done) + " of " + report.Number(total) + " objects"
	case done == 0:
		text = "listing objects"
	}
	held := v.pace.WaitsForBytes()
	if seconds := now.Sub(v.first).Seconds(); !v.first.IsZero() && seconds >= 1 {
		rate := float64(done-v.before) / seconds
		text += fmt.Sprintf(", %.0f/s", rate)
		if total > done && held == 0 {
			text += fmt.Sprintf(", %v left", time.Duration(float64(total-done)/rate*float64(time.Second)).Round(time.Second))
		}
	}
	if held > 0 {
		text += fmt.Sprintf(", waiting %v for --%s", max(held, time.Second).Round(time.Second), maxBytesFlag)
	}
	if failed := v.report.Storage.Counts.Failed; failed > 0 {
		text += fmt.Sprintf(", %s failed", report.Number(failed))
	}
	if v.report.Waiting != "" {
		text += ", trying again after: " + v.report.Waiting
	}
	return text
}

// waitingText is short, for the bar; waitingSentence names what it is about.
func waitingText(e *crdmigrator.NotSettledError, since time.Duration) string {
	switch {
	case len(e.Stale) > 0:
		return "waiting for an API server with a stale lease"
	case len(e.Servers) > 0:
		return fmt.Sprintf("waiting for %s to adopt the storage version", report.Count(int64(len(e.Servers)), "API server", "API servers"))
	}
	return fmt.Sprintf("settling, %v left", max(0, e.Wait-since).Round(time.Second))
}

func waitingSentence(e *crdmigrator.NotSettledError) string {
	text := "nothing is written yet: " + cli.OneLine(e)
	if len(e.Stale) > 0 {
		name := e.Stale[0].Name
		text += fmt.Sprintf("; bring it back, or, if it is gone for good: kubectl delete lease -n kube-system %s, or --accept-stale-leases", name)
	}
	return text
}

// waitingKind tells one reason to wait from another, so that each is said once.
func waitingKind(e *crdmigrator.NotSettledError) string {
	return fmt.Sprint(e.Servers == nil, names(e.Servers), names(e.Stale))
}

func names(servers []crdmigrator.Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Name
	}
	return list
}
