package revision

import (
	"fmt"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
)

// steps shows the progress of upgrades: a bar on terminals, else a line every ten seconds. An
// upgrade is half done when the new revision exists.
type steps struct {
	console *cli.Console

	mu    sync.Mutex
	what  string
	total int64
	// made have a new revision, done have ended this pass, failing met an error. The key is
	// namespace and name, since a failed attempt is retried.
	made, done, failing map[string]bool
	drawn               *mpb.Progress
	bar                 *mpb.Bar
	stop                func()
}

// begin draws nothing if the total is 0.
func (s *steps) begin(what string, total int) {
	s.what, s.total = what, int64(total)
	s.made, s.done, s.failing = map[string]bool{}, map[string]bool{}, map[string]bool{}
	switch {
	case total == 0:
	case s.console.Terminal:
		s.drawn, s.bar = s.console.Draw(func() string { return what }, 2*s.total+1, s.text) // a full bar would look finished
	default:
		s.console.Printf("%s %s\n", what, report.Count(s.total, "upgrade", "upgrades"))
		s.stop = s.console.Repeat(func(time.Time) string { return what + " " + s.text() })
	}
}

// moved is called by several goroutines. Counts never decrease, although another attempt and
// another pass report the same upgrades again.
func (s *steps) moved(r revision.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Namespace + "/" + r.Name
	delete(s.failing, key)
	switch {
	case r.Reason == revision.ReasonUnanswered:
		s.failing[key] = true
	case r.Phase == revision.Created && r.Reason == "":
		s.made[key] = true
	default:
		s.made[key], s.done[key] = true, true
		if r.Phase == revision.Failed {
			s.failing[key] = true
		}
	}
	s.total = max(s.total, int64(len(s.made)))
	if s.bar != nil {
		s.bar.SetCurrent(int64(len(s.made) + len(s.done)))
	}
}

func (s *steps) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("%s of %s upgrades", report.Number(int64(len(s.done))), report.Number(s.total))
	if n := len(s.made) - len(s.done); n > 0 {
		text += fmt.Sprintf(", %s made", report.Number(int64(n)))
	}
	if n := len(s.failing); n > 0 {
		text += fmt.Sprintf(", %s failed", report.Number(int64(n)))
	}
	return text
}

func (s *steps) end() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if s.drawn != nil {
		s.console.Erase(s.drawn, s.bar)
		s.mu.Lock()
		s.drawn, s.bar = nil, nil
		s.mu.Unlock()
	}
}
