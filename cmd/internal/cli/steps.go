package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
)

// steps shows how upgrades of revisions go: a bar on terminals, else a line every ten
// seconds. Half of an upgrade is done when the new revision is there.
type steps struct {
	console *console

	mu      sync.Mutex
	what    string
	total   int64
	half    map[string]bool // what has been made, and nobody was led to it yet
	done    int64
	drawn   *mpb.Progress
	bar     *mpb.Bar
	stop    func()
	failing int64
}

// begin draws nothing where nothing is to be done.
func (s *steps) begin(what string, total int) {
	s.what, s.total, s.half = what, int64(total), map[string]bool{}
	switch {
	case total == 0:
	case s.console.terminal:
		s.drawn, s.bar = s.console.draw(what, 2*s.total+1, s.text) // a full bar would be taken for a finished one
	default:
		s.console.printf("%s %s\n", what, report.Count(s.total, "upgrade", "upgrades"))
		s.stop = s.console.repeat(func(time.Time) string { return what + " " + s.text() })
	}
}

// moved is called by several goroutines.
func (s *steps) moved(r revision.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Namespace + "/" + r.Name
	if r.Phase == revision.Created && r.Reason == "" {
		s.half[key] = true
	} else {
		delete(s.half, key)
		s.done++
	}
	if r.Phase == revision.Failed || r.Reason == revision.ReasonUnanswered {
		s.failing++
	}
	if s.bar != nil {
		s.bar.SetCurrent(2*s.done + int64(len(s.half)))
	}
}

func (s *steps) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("%s of %s upgrades", report.Number(s.done), report.Number(s.total))
	if n := len(s.half); n > 0 {
		text += fmt.Sprintf(", %s made", report.Number(int64(n)))
	}
	if s.failing > 0 {
		text += fmt.Sprintf(", %s failed", report.Number(s.failing))
	}
	return text
}

func (s *steps) end() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if s.drawn != nil {
		s.console.erase(s.drawn, s.bar)
		s.mu.Lock()
		s.drawn, s.bar = nil, nil
		s.mu.Unlock()
	}
}
