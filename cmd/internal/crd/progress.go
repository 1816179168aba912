package crd

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// pace returns how long a run waits for its limit of bytes.
type pace interface{ WaitsForBytes() time.Duration }

// endText returns the last line for a CRD.
func endText(r crdreport.Run, dryRun bool) string {
	if dryRun && r.Result != crdreport.Blocked {
		return fmt.Sprintf("%s: dry run, nothing was written: %s accepted, %s refused", r.Name,
			render.Count(r.Objects.Skipped, "object", "objects"), render.Number(r.Objects.Failed))
	}
	return r.Name + ": " + crdreport.Summary(r)
}

// view is the progress of one CRD. The migration writes it, the drawing reads it.
type view struct {
	pace pace

	mu        sync.Mutex
	plan      decision.Plan
	unsettled *decision.NotSettledError // nil once writing has begun
	waiting   string                    // the last kind of wait
	seen      time.Time                 // when unsettled was set
	report    decision.Report
	first     time.Time // when objects began to be written
	before    int64     // objects done by then: the rate leaves out what a resumed run skips
	ended     bool
}

// settling stores why the run waits, and reports whether the last wait had another reason.
func (v *view) settling(e *decision.NotSettledError, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unsettled, v.seen = e, now
	last := v.waiting
	v.waiting = waitingKind(e)
	return v.waiting != last
}

func (v *view) update(r decision.Report, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unsettled, v.report = nil, r
	counts := r.Storage.Counts
	if v.first.IsZero() && counts.Total() > 0 && (!v.plan.Resumes || counts.Total() > counts.Skipped) {
		v.first, v.before = now, counts.Total()-1
	}
}

func (v *view) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended, v.unsettled = true, nil
}

// counts returns the number of objects done, and of all objects. total is 0 if it is unknown.
func (v *view) counts() (done, total int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.total()
}

func (v *view) total() (done, total int64) {
	done = v.report.Storage.Counts.Total()
	total = v.planned()
	if done > 0 && v.report.Storage.Remaining >= 0 {
		total = max(total, done+v.report.Storage.Remaining)
	}
	return done, total
}

// planned is the number of objects in the plan; 0 if it is unknown.
func (v *view) planned() int64 {
	if v.plan.Objects == nil {
		return 0
	}
	return *v.plan.Objects
}

// text returns the progress in a few words.
func (v *view) text(now time.Time) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unsettled != nil {
		return waitingText(v.unsettled, now.Sub(v.seen))
	}
	if tried := v.report.RoundTrips; v.report.Storage.Counts.Total() == 0 && tried.Counts.Total() > 0 {
		return render.Number(tried.Counts.Total()) + " of " + render.Number(max(tried.Counts.Total(), v.planned())) + " objects tried through their old versions, to prove that each value is kept"
	}
	done, total := v.total()
	text := render.Number(done) + " objects"
	switch {
	case total > 0:
		text = render.Number(done) + " of " + render.Number(total) + " objects"
	case done == 0:
		text = "listing objects"
	}
	parts := append([]string{text}, speedText(done-v.before, total-done, v.first, now, v.pace)...)
	if failed := v.report.Storage.Counts.Failed; failed > 0 {
		parts = append(parts, render.Number(failed)+" failed")
	}
	if v.report.Waiting != "" {
		parts = append(parts, "trying again after: "+v.report.Waiting)
	}
	return strings.Join(parts, ", ")
}

// speedText returns the rate since the first write, and either the time that the rest takes or
// what the writes wait for.
func speedText(done, left int64, first, now time.Time, p pace) []string {
	var parts []string
	wait := p.WaitsForBytes()
	if seconds := now.Sub(first).Seconds(); !first.IsZero() && seconds >= 1 {
		rate := float64(done) / seconds
		parts = append(parts, fmt.Sprintf("%.0f/s", rate))
		if left > 0 && rate > 0 && wait == 0 {
			parts = append(parts, fmt.Sprintf("%v left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second)))
		}
	}
	if wait > 0 {
		parts = append(parts, fmt.Sprintf("waiting %v for --%s", max(wait, time.Second).Round(time.Second), frame.MaxBytesFlag))
	}
	return parts
}

// waitingText returns a short reason to wait, for the bar. waitingSentence returns the whole reason.
func waitingText(e *decision.NotSettledError, since time.Duration) string {
	switch {
	case e.Late:
		return "waiting for the API server to adopt the storage version"
	case len(e.Stale) > 0:
		return "waiting for an API server with a stale lease"
	case len(e.Servers) > 0:
		return fmt.Sprintf("waiting for %s to adopt the storage version", render.Count(int64(len(e.Servers)), "API server", "API servers"))
	}
	return fmt.Sprintf("settling, %v left", max(0, e.Wait-since).Round(time.Second))
}

func waitingSentence(e *decision.NotSettledError) string {
	text := "nothing is written yet: " + frame.OneLine(e)
	if len(e.Stale) > 0 {
		name := e.Stale[0].Name
		text += fmt.Sprintf("; bring it back, or, if it is gone for good: kubectl delete lease -n kube-system %s, or --accept-stale-leases", name)
	}
	return text
}

// waitingKind returns a key of the reason to wait. The board prints each reason once.
func waitingKind(e *decision.NotSettledError) string {
	return fmt.Sprint(e.Late, e.Servers == nil, names(e.Servers), names(e.Stale))
}

func names(servers []decision.Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Name
	}
	return list
}
