package frame

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// screen keeps what is drawn.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	drawings := strings.Split(strings.TrimSpace(s.text.String()), "name")
	return drawings[len(drawings)-1]
}

// TestDraw_TotalGrows: a bar that began with the first CRD of several has the objects of all of them.
func TestDraw_TotalGrows(t *testing.T) {
	var s screen
	c := &Console{out: &s, Terminal: true}
	drawn, bar := c.Draw(func() string { return "name" }, 5, func() string { return "text" })
	defer c.Erase(drawn, bar)
	bar.SetTotal(2000, false)
	bar.SetCurrent(500)
	for range 100 {
		if strings.Contains(s.last(), strings.Repeat("█", barWidth/4)+strings.Repeat("░", barWidth*3/4)) {
			return
		}
		time.Sleep(BarEvery / 3)
	}
	t.Errorf("the bar of 500 of 2000 is %q, want a quarter", s.last())
}

func TestErrorsOnATerminal(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"a remedy": {
			"it stands below, with its command on a line of its own",
			fmt.Errorf("plan: %w", &ActionableError{Message: "namespace shop not found on https://10.0.0.1:6443", Remedy: "list the namespaces: kubectl get namespaces"}),
			`error: plan: namespace shop not found on
  https://10.0.0.1:6443
  → list the namespaces:
      kubectl get namespaces
`,
		},
		"several errors": {
			"each has its own remedy", errors.Join(errors.New("one"), &ActionableError{Message: "two", Remedy: "see: godwit plan"}),
			"error: one\nerror: two\n  → see:\n      godwit plan\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := problemText(render.Style{Width: 45}, c.err); got != c.want {
				t.Errorf("%s:\n%s\nwant:\n%s", c.reason, got, c.want)
			}
		})
	}
}
