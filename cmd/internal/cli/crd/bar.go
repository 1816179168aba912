package crd

import (
	"time"

	"github.com/vbauerster/mpb/v8"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report/crdreport"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// bar is the display of terminals.
type bar struct {
	console *cli.Console
	dryRun  bool
	pace    pace
	view    *view
	waiting string
	drawn   *mpb.Progress
	bar     *mpb.Bar
	set     time.Time // when the bar was last told
}

var _ display = &bar{}

func (b *bar) begin(p crdmigrator.Plan) {
	v := &view{plan: p, pace: b.pace}
	b.view, b.waiting, b.set = v, "", time.Time{}
	_, total := v.counts()
	b.drawn, b.bar = b.console.Draw(p.Name, total, func() string { return v.text(time.Now()) })
}

func (b *bar) settling(e *crdmigrator.NotSettledError) {
	b.view.settling(e, time.Now())
	if kind := waitingKind(e); kind != b.waiting {
		b.waiting = kind
		b.note(b.view.plan.Name + ": " + waitingSentence(e))
	}
}

// moved is called for each object, much more often than anybody can see.
func (b *bar) moved(r crdmigrator.Report) {
	if b.view == nil {
		return
	}
	now := time.Now()
	b.view.moved(r, now)
	if now.Sub(b.set) < cli.BarEvery {
		return
	}
	b.set = now
	done, total := b.view.counts()
	b.bar.SetTotal(total+1, false) // a full bar would be taken for a finished one
	b.bar.SetCurrent(done)
}

func (b *bar) note(text string) { b.console.Printf("%s\n", text) }

func (b *bar) end(r crdreport.Run) {
	if b.drawn != nil {
		b.console.Erase(b.drawn, b.bar)
		b.drawn, b.view = nil, nil
	}
	b.console.Printf("%s\n", endText(r, b.dryRun))
}
