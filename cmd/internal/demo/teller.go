package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

const (
	indent = "   "
	// headingWidth leaves the time of a chapter within 80 columns.
	headingWidth = 70
)

// teller writes the text of the demo, in the same form for a terminal and for a log. It ignores
// write errors, since the exit code depends on the claims as well.
type teller struct {
	out      io.Writer
	began    time.Time
	chapters int
}

// chapter begins one, with its time since the beginning.
func (t *teller) chapter(title string) {
	t.chapters++
	heading := fmt.Sprintf("%d. %s", t.chapters, title)
	elapsed := render.Duration(time.Since(t.began).Seconds())
	t.write(fmt.Sprintf("\n%-*s %7s\n", headingWidth, heading, elapsed))
}

// say writes one or more lines of narration.
func (t *teller) say(format string, args ...any) {
	var text strings.Builder
	for line := range strings.Lines(fmt.Sprintf(format, args...) + "\n") {
		if line != "\n" {
			text.WriteString(indent)
		}
		text.WriteString(line)
	}
	t.write(text.String())
}

// line writes a line at the margin.
func (t *teller) line(format string, args ...any) { t.write(fmt.Sprintf(format, args...) + "\n") }

func (t *teller) write(text string) { _, _ = io.WriteString(t.out, text) }

// claim prints a claim that holds, and returns an error if it does not hold.
func claim[T comparable](t *teller, what string, got, want T) error {
	if got != want {
		return wrong("%s: %v, and it should be %v", what, got, want)
	}
	t.say("✓ %s: %v", what, got)
	return nil
}

// wrong returns the error of a claim that does not hold.
func wrong(format string, args ...any) error {
	return fmt.Errorf("the demo went wrong: "+format, args...)
}

// indented writes whole lines, with an indentation.
type indented struct {
	teller *teller
	copy   bytes.Buffer
	rest   []byte
}

func (w *indented) Write(p []byte) (int, error) {
	w.copy.Write(p)
	w.rest = append(w.rest, p...)
	if end := bytes.LastIndexByte(w.rest, '\n'); end >= 0 {
		w.teller.say("%s", w.rest[:end])
		w.rest = append(w.rest[:0], w.rest[end+1:]...)
	}
	return len(p), nil
}
