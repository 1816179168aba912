package externalname

import (
	"fmt"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

// progress shows how many managed resources are done: a bar on terminals, else a line every ten seconds.
type progress struct {
	console *frame.Console
	what    string

	mu    sync.Mutex
	total int64
	ended int64
	bad   int64
	drawn *mpb.Progress
	bar   *mpb.Bar
	stop  func()
}

// begin draws nothing if the total is 0.
func (p *progress) begin(total int) {
	p.total, p.ended = int64(total), 0
	switch {
	case total == 0:
	case p.console.Terminal:
		p.drawn, p.bar = p.console.Draw(func() string { return p.what }, p.total+1, p.text) // a full bar would look finished
	default:
		p.console.Printf("%s %s\n", p.what, render.Count(p.total, "managed resource", "managed resources"))
		p.stop = p.console.Repeat(func(time.Time) string { return p.what + " " + p.text() })
	}
}

func (p *progress) update(r fleet.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Phase == "" {
		return
	}
	p.ended++
	if r.Phase == fleet.PhaseUndone || r.Phase == fleet.PhaseFailed {
		p.bad++
	}
	if p.bar != nil {
		p.bar.SetCurrent(p.ended)
	}
}

func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%s of %s managed resources", render.Number(p.ended), render.Number(p.total))
	if p.bad > 0 {
		text += fmt.Sprintf(", %s undone or failed", render.Number(p.bad))
	}
	return text
}

func (p *progress) end() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	if p.drawn != nil {
		p.console.Erase(p.drawn, p.bar)
		p.drawn, p.bar = nil, nil
	}
}
