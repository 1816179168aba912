package crd

import (
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// lines is the display of logs and pipes: a line when something begins, ends or
// starts to wait, and one every ten seconds.
type lines struct {
	console *cli.Console
	dryRun  bool
	pace    pace
	view    *view
	waiting string
	stop    func()
}

var _ display = &lines{}

func (l *lines) begin(p crdmigrator.Plan) {
	l.view, l.waiting = &view{plan: p, pace: l.pace}, ""
	l.console.Printf("%s: %s\n", p.Name, beginText(p, l.dryRun))
	v := l.view
	l.stop = l.console.Repeat(func(now time.Time) string { return p.Name + ": " + v.text(now) })
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
		l.console.Printf("%s: %s\n", l.view.plan.Name, waitingSentence(e))
	}
}

func (l *lines) moved(r crdmigrator.Report) {
	if l.view != nil {
		l.view.moved(r, time.Now())
	}
}

func (l *lines) note(text string) { l.console.Printf("%s\n", text) }

func (l *lines) end(r crdreport.Run) {
	if l.stop != nil {
		l.stop()
		l.stop, l.view = nil, nil
	}
	l.console.Printf("%s\n", endText(r, l.dryRun))
}
