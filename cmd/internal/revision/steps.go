package revision

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// steps shows the progress of upgrades: a bar on terminals, else a line every ten seconds. An
// upgrade is half done when the new revision exists.
type steps struct {
	console *frame.Console

	mu    sync.Mutex
	what  string
	total int64
	// reached has the progress of each upgrade: attempts are repeated. A key is a hash, because the names of all
	// revisions of a cluster take megabytes; equal hashes of two revisions would only miscount one of them.
	reached             map[uint64]reached
	seed                maphash.Seed
	made, done, failing int64
	drawn               *mpb.Progress
	bar                 *mpb.Bar
	stop                func()
}

// reached is a set of facts about one upgrade.
type reached uint8

const (
	made    reached = 1 << iota // the new revision exists
	done                        // it has ended this pass
	failing                     // its last step met an error
)

// begin draws nothing if the total is 0.
func (s *steps) begin(what string, total int) {
	s.what, s.total = what, int64(total)
	s.reached, s.seed = map[uint64]reached{}, maphash.MakeSeed()
	s.made, s.done, s.failing = 0, 0, 0
	switch {
	case total == 0:
	case s.console.Terminal:
		s.drawn, s.bar = s.console.Draw(func() string { return what }, 2*s.total+1, s.text) // a full bar would look finished
	default:
		s.console.Printf("%s %s\n", what, render.Count(s.total, "upgrade", "upgrades"))
		s.stop = s.console.Repeat(func(time.Time) string { return what + " " + s.text() })
	}
}

// update records a step of an upgrade. Several goroutines call it. Counts never decrease, even if another attempt or
// pass reports the same upgrades again.
func (s *steps) update(r revision.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.key(r)
	before := s.reached[key]
	now := before &^ failing
	switch {
	case r.Reason == decision.ReasonUnanswered:
		now |= failing
	case r.Phase == revision.Created && r.Reason == nil:
		now |= made
	default:
		now |= made | done
		if r.Phase == revision.Failed {
			now |= failing
		}
	}
	s.reached[key] = now
	s.made += now.count(made) - before.count(made)
	s.done += now.count(done) - before.count(done)
	s.failing += now.count(failing) - before.count(failing)
	s.total = max(s.total, s.made)
	if s.bar != nil {
		s.bar.SetCurrent(s.made + s.done)
	}
}

func (s *steps) key(r revision.Result) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(r.Namespace)
	_ = h.WriteByte('/')
	_, _ = h.WriteString(r.Name)
	return h.Sum64()
}

// count is 1 where a fact is true, otherwise 0.
func (r reached) count(fact reached) int64 {
	if r&fact == 0 {
		return 0
	}
	return 1
}

func (s *steps) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("%s of %s upgrades", render.Number(s.done), render.Number(s.total))
	if n := s.made - s.done; n > 0 {
		text += fmt.Sprintf(", %s made", render.Number(n))
	}
	if s.failing > 0 {
		text += fmt.Sprintf(", %s failed", render.Number(s.failing))
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
