package crd

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
)

// board shows the progress of a run on stderr: one line for each CRD that begins, ends
// or starts to wait, and for all CRDs together a bar on a terminal, or else a line every
// ten seconds. Several CRDs may report at the same time.
type board struct {
	console *frame.Console
	dryRun  bool
	pace    pace

	mu     sync.Mutex
	views  []*view // in the order in which the CRDs began
	active int
	drawn  *mpb.Progress
	bar    *mpb.Bar
	set    time.Time // when the bar was last set
	stop   func()    // ends the repeated line
}

// begin shows a CRD.
func (b *board) begin(p decision.Plan) *view {
	v := &view{plan: p, pace: b.pace}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.active == 0 {
		b.views = nil // these CRDs have ended; the views stayed because the bar draws until it is erased
	}
	b.views = append(b.views, v)
	b.active++
	if !b.console.Terminal {
		b.note(p.Name + ": " + beginText(p, b.dryRun))
	}
	switch {
	case b.active > 1:
	case b.console.Terminal:
		_, total := v.counts()
		b.set = time.Time{}
		b.drawn, b.bar = b.console.Draw(b.name, total, b.text)
	default:
		b.stop = b.console.Repeat(func(time.Time) string { return b.name() + ": " + b.text() })
	}
	return v
}

func beginText(p decision.Plan, dryRun bool) string {
	if p.State == decision.Clean {
		return "cleaning managedFields that name versions which are not served"
	}
	text := "migrating"
	if dryRun {
		text = "dry run, trying"
	}
	if p.Objects != nil {
		text += " " + render.Count(*p.Objects, "object", "objects")
	}
	text += " to " + p.StorageVersion
	if p.Resumes {
		text += ", resuming an earlier run"
	}
	return text
}

// settling prints each reason to wait once.
func (b *board) settling(v *view, e *decision.NotSettledError) {
	if v.settling(e, time.Now()) {
		b.note(v.plan.Name + ": " + waitingSentence(e))
	}
}

// update is called for each object, which is more often than the bar is drawn.
func (b *board) update(v *view, r decision.Report) {
	now := time.Now()
	v.update(r, now)
	if bar, s := b.due(now); bar != nil {
		bar.SetTotal(s.total+1, false) // a full bar would look finished
		bar.SetCurrent(s.done)
	}
}

// due returns the bar, and what to show, once [frame.BarEvery] has passed since the last update.
// The caller sets the bar without the lock, because the bar calls text, which takes the lock.
func (b *board) due(now time.Time) (*mpb.Bar, sum) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil || now.Sub(b.set) < frame.BarEvery {
		return nil, sum{}
	}
	b.set = now
	return b.bar, sumOf(b.views)
}

func (b *board) note(text string) { b.console.Printf("%s\n", text) }

// end prints how the run of a CRD ended. After the last CRD it removes the bar.
func (b *board) end(v *view, r crdreport.Run) {
	v.end()
	if drawn, bar, stop := b.leave(); drawn != nil {
		b.console.Erase(drawn, bar)
	} else if stop != nil {
		stop()
	}
	b.note(endText(r, b.dryRun))
}

// leave counts a CRD as ended. After the last CRD it returns the bar or the end of the repeated
// line: the caller ends them without the lock, because both call text, which takes the lock.
func (b *board) leave() (drawn *mpb.Progress, bar *mpb.Bar, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.active--; b.active > 0 {
		return nil, nil, nil
	}
	drawn, bar, stop = b.drawn, b.bar, b.stop
	b.drawn, b.bar, b.stop = nil, nil, nil
	return drawn, bar, stop
}

func (b *board) current() []*view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.views
}

// name returns the name of the only CRD, or how many CRDs have ended.
func (b *board) name() string {
	views := b.current()
	if len(views) == 1 {
		return views[0].plan.Name
	}
	return fmt.Sprintf("%d of %d CRDs", sumOf(views).ended, len(views))
}

func (b *board) text() string {
	views, now := b.current(), time.Now()
	if len(views) == 1 {
		return views[0].text(now)
	}
	return sumOf(views).text(now, b.pace)
}

// sum is the progress of several CRDs together.
type sum struct {
	ended, waiting, failed int64
	done, total            int64
	before                 int64     // done when objects began to be written
	first                  time.Time // when that was; zero: not yet
}

func sumOf(views []*view) sum {
	var s sum
	for _, v := range views {
		v.addTo(&s)
	}
	return s
}

func (s sum) text(now time.Time, p pace) string {
	parts := []string{fmt.Sprintf("%s of %s objects", render.Number(s.done), render.Number(s.total))}
	parts = append(parts, speedText(s.done-s.before, s.total-s.done, s.first, now, p)...)
	if s.waiting > 0 {
		parts = append(parts, render.Count(s.waiting, "CRD waits", "CRDs wait")+" for API servers")
	}
	if s.failed > 0 {
		parts = append(parts, render.Number(s.failed)+" failed")
	}
	return strings.Join(parts, ", ")
}

// addTo adds the progress of this CRD to that of others.
func (v *view) addTo(s *sum) {
	v.mu.Lock()
	defer v.mu.Unlock()
	done, total := v.total()
	s.done, s.total = s.done+done, s.total+max(done, total)
	s.failed += v.report.Storage.Counts.Failed
	switch {
	case v.ended:
		s.ended++
	case v.unsettled != nil:
		s.waiting++
	}
	switch {
	case v.first.IsZero():
		s.before += done // only skipped so far
	default:
		s.before += v.before
		if s.first.IsZero() || v.first.Before(s.first) {
			s.first = v.first
		}
	}
}

// ShowScan shows how far a scan of the cluster is: a bar on a terminal, or else a line every ten seconds. The scan calls show, and
// done ends it.
func ShowScan(console *frame.Console) (show func(ownerreference.Scan), done func()) {
	var mu sync.Mutex
	var now ownerreference.Scan
	text := func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprintf("%d of %s, %s", now.Listed, render.Count(int64(now.Resources), "resource", "resources"), render.Count(now.Objects, "object", "objects"))
	}
	store := func(s ownerreference.Scan) {
		mu.Lock()
		defer mu.Unlock()
		now = s
	}
	const name = "reading metadata"
	if !console.Terminal {
		return store, console.Repeat(func(time.Time) string { return name + ": " + text() })
	}
	drawn, bar := console.Draw(func() string { return name }, 1, text)
	return func(s ownerreference.Scan) {
		store(s)
		bar.SetTotal(int64(s.Resources)+1, false) // a full bar would look finished
		bar.SetCurrent(int64(s.Listed))
	}, func() { console.Erase(drawn, bar) }
}
