package resource

import (
	"fmt"
	"sync"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/walk"
)

// progress prints how many objects of a resource are done: every ten seconds, or in a bar on a terminal.
type progress struct {
	stop func()

	mu   sync.Mutex
	done int64
	all  int64 // 0 if it is not known
}

func newProgress(console *frame.Console, f finding) *progress {
	p := &progress{}
	if f.plan.Objects != nil {
		p.all = *f.plan.Objects
	}
	if console.Terminal {
		drawn, bar := console.Draw(func() string { return f.name }, p.all, p.text)
		p.stop = func() { console.Erase(drawn, bar) }
		return p
	}
	p.stop = console.Repeat(func(time.Time) string { return fmt.Sprintf("%s: %s", f.name, p.text()) })
	return p
}

// update counts an object.
func (p *progress) update(r walk.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = r.Counts.Total()
}

func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == 0 {
		return render.Number(p.done) + " objects"
	}
	return render.Number(p.done) + " of " + render.Number(max(p.all, p.done)) + " objects"
}
