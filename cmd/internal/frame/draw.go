package frame

import (
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	// BarEvery is the time between two drawings of a bar: smooth, and cheap over ssh.
	BarEvery = 150 * time.Millisecond
	// barWidth leaves space for a name and a few words in 100 columns.
	barWidth = 24
)

// Draw starts a bar, which shares the console until Erase. It calls name and text for each
// drawing.
func (c *Console) Draw(name func() string, total int64, text func() string) (*mpb.Progress, *mpb.Bar) {
	drawn := mpb.New(mpb.WithOutput(c.out), mpb.WithRefreshRate(BarEvery), mpb.WithAutoRefresh())
	bar := drawn.New(0, mpb.BarStyle().Filler("█").Tip("█").Padding("░").Lbound("").Rbound(""),
		mpb.BarWidth(barWidth),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return name() + " " })),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + text() })),
	)
	bar.SetTotal(max(1, total), false) // a total that is given to New can't be changed
	c.share(drawn)
	return drawn, bar
}

// Erase ends a bar and removes it from the terminal.
func (c *Console) Erase(drawn *mpb.Progress, bar *mpb.Bar) {
	bar.Abort(true)
	drawn.Wait()
	c.share(nil)
}

// lineEvery shows progress without filling a log.
const lineEvery = 10 * time.Second

// Repeat prints a line each time lineEvery has passed, until stop is called.
func (c *Console) Repeat(line func(time.Time) string) (stop func()) {
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
				c.Printf("%s\n", line(now))
			}
		}
	})
	return func() { close(done); ticking.Wait() }
}
