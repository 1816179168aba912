package frame

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fake is a benchmark that measures a ratio.
type fake struct {
	Ratio   float64 `json:"ratio"`
	measure func(*Bench) error
}

func (f fake) Measure(_ context.Context, b *Bench) error { return f.measure(b) }

func (fake) Summary() string { return "test: ratio=0.50" }

// TestRun: the result is written and summed up after the cleanups, unless the measurement has failed.
func TestRun(t *testing.T) {
	broken := errors.New("broken")
	const summary = "test: ratio=0.50\n"
	for name, c := range map[string]struct {
		reason       string
		err, cleanup error
		want         string
	}{
		"Whole":        {reason: "stdout has nothing but the summary.", want: summary},
		"Failed":       {reason: "A number that was not measured is not zero.", err: broken},
		"Incomplete":   {reason: "What was measured is kept, and the exit code is 1.", err: fmt.Errorf("one of two: %w", ErrIncomplete), want: summary},
		"CleanupFails": {reason: "A server that did not stop does not spoil the result.", cleanup: broken, want: summary},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Bench{Name: "test", out: filepath.Join(t.TempDir(), "folder", "test.json")}
			var stdout bytes.Buffer
			var cleaned []int
			err := b.run(t.Context(), &stdout, fake{0.5, func(b *Bench) error {
				b.Cleanup(func() error { cleaned = append(cleaned, 1); return c.cleanup })
				b.Cleanup(func() error { cleaned = append(cleaned, 2); return nil })
				return c.err
			}})
			if want := cmp.Or(c.err, c.cleanup); !errors.Is(err, want) {
				t.Errorf("%s\ngot error %v, want %v", c.reason, err, want)
			}
			if stdout.String() != c.want || !slices.Equal(cleaned, []int{2, 1}) {
				t.Errorf("%s\ngot %q after cleanups %v, want %q after 2 and 1", c.reason, stdout.String(), cleaned, c.want)
			}
			text, err := os.ReadFile(b.out)
			if written := strings.Contains(string(text), `"ratio": 0.5`); written != (c.want != "") {
				t.Errorf("%s\nthe file has %q, %v", c.reason, text, err)
			}
			if _, err := os.Stat(b.Dir); err == nil {
				t.Errorf("folder %s is left", b.Dir)
			}
		})
	}
}

// TestLogsAreKept: a folder that the user names is not removed.
func TestLogsAreKept(t *testing.T) {
	b := &Bench{Name: "test", Dir: filepath.Join(t.TempDir(), "logs")}
	err := b.run(t.Context(), nil, fake{0, func(*Bench) error { return errors.New("broken") }})
	if _, missing := os.Stat(b.Dir); err == nil || missing != nil {
		t.Errorf("the folder: %v; the error: %v", missing, err)
	}
}
