package cli

import (
	"sync"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// lineEvery is often enough to see that something is happening and seldom
// enough for a log.
const lineEvery = 10 * time.Second

// lines is the display of logs and pipes: a line when something begins, ends or
// starts to wait, and one every ten seconds.
type lines struct {
	console *console
	dryRun  bool
	pace    pace
	view    *view
	waiting string
	stop    func()
}

var _ display = &lines{}

func (l *lines) begin(p crdmigrator.Plan) {
	l.view, l.waiting = &view{plan: p, pace: l.pace}, ""
	l.console.printf("%s: %s\n", p.Name, beginText(p, l.dryRun))
	v := l.view
	l.stop = l.console.repeat(func(now time.Time) string { return p.Name + ": " + v.text(now) })
}

// repeat says a line every now and then, until it is stopped.
func (c *console) repeat(line func(time.Time) string) (stop func()) {
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(lineEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				c.printf("%s\n", line(now))
			}
		}
	})
	return func() { close(done); ticking.Wait() }
}

func beginText(p crdmigrator.Plan, dryRun bool) string {
	if p.State == crdmigrator.Clean {
		return "cleaning managedFields that name versions which are not served"
	}
	text := "migrating"
	if dryRun {
		text = "dry run, trying"
	}
	if p.Objects != nil {
		text += " " + report.Count(*p.Objects, "object", "objects")
	}
	text += " to " + p.StorageVersion
	if p.Resumes {
		text += ", resuming an earlier run"
	}
	return text
}

func (l *lines) settling(e *crdmigrator.NotSettledError) {
	l.view.settling(e, time.Now())
	if kind := waitingKind(e); kind != l.waiting {
		l.waiting = kind
		l.console.printf("%s: %s\n", l.view.plan.Name, waitingSentence(e))
	}
}

func (l *lines) moved(r crdmigrator.Report) {
	if l.view != nil {
		l.view.moved(r, time.Now())
	}
}

func (l *lines) note(text string) { l.console.printf("%s\n", text) }

func (l *lines) end(r report.CRDRunReport) {
	if l.stop != nil {
		l.stop()
		l.stop, l.view = nil, nil
	}
	l.console.printf("%s\n", endText(r, l.dryRun))
}
