package cli

import (
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
)

const (
	// barEvery is how often the bar is redrawn: smooth, and cheap over ssh.
	barEvery = 150 * time.Millisecond
	// barWidth leaves room for a name and a few words in 100 columns.
	barWidth = 24
)

// bar is the display of terminals.
type bar struct {
	console *console
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
	b.drawn, b.bar = b.console.draw(p.Name, total, func() string { return v.text(time.Now()) })
}

// draw begins a bar, which shares the console until it is erased.
func (c *console) draw(name string, total int64, text func() string) (*mpb.Progress, *mpb.Bar) {
	drawn := mpb.New(mpb.WithOutput(c.out), mpb.WithRefreshRate(barEvery), mpb.WithAutoRefresh())
	bar := drawn.New(max(1, total), mpb.BarStyle().Filler("█").Tip("█").Padding("░").Lbound("").Rbound(""),
		mpb.BarWidth(barWidth),
		mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + text() })),
	)
	c.share(drawn)
	return drawn, bar
}

func (c *console) erase(drawn *mpb.Progress, bar *mpb.Bar) {
	bar.Abort(true)
	drawn.Wait()
	c.share(nil)
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
	if now.Sub(b.set) < barEvery {
		return
	}
	b.set = now
	done, total := b.view.counts()
	b.bar.SetTotal(total+1, false) // a full bar would be taken for a finished one
	b.bar.SetCurrent(done)
}

func (b *bar) note(text string) { b.console.printf("%s\n", text) }

func (b *bar) end(r report.CRDRunReport) {
	if b.drawn != nil {
		b.console.erase(b.drawn, b.bar)
		b.drawn, b.view = nil, nil
	}
	b.console.printf("%s\n", endText(r, b.dryRun))
}
