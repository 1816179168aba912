package stage

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	indent = "   "
	// headingWidth leaves the time of a chapter within 80 columns.
	headingWidth = 70
)

// Teller writes the text of a story, in the same form for a terminal and for a log. It ignores
// write errors: a claim that does not hold ends the demo with an error in any case.
type Teller struct {
	out      io.Writer
	began    time.Time
	chapters int
}

// Chapter prints the heading of the next chapter, with the time since the story began.
func (t *Teller) Chapter(title string) {
	t.chapters++
	heading := fmt.Sprintf("%d. %s", t.chapters, title)
	t.write(fmt.Sprintf("\n%-*s %7s\n", headingWidth, heading, elapsed(time.Since(t.began))))
}

// elapsed formats a duration as godwit prints it.
func elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Number formats a number below a million as godwit prints it.
func Number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// Paragraph writes one or more lines of narration.
func (t *Teller) Paragraph(format string, args ...any) {
	var text strings.Builder
	for line := range strings.Lines(fmt.Sprintf(format, args...) + "\n") {
		if line != "\n" {
			text.WriteString(indent)
		}
		text.WriteString(line)
	}
	t.write(text.String())
}

// Line writes a line at the margin.
func (t *Teller) Line(format string, args ...any) { t.write(fmt.Sprintf(format, args...) + "\n") }

func (t *Teller) write(text string) { _, _ = io.WriteString(t.out, text) }

// Claim prints the claim that got is want, or returns an error if it is not.
func Claim[T comparable](t *Teller, what string, got, want T) error {
	if got != want {
		return Wrong("%s: %v, and it should be %v", what, got, want)
	}
	t.Paragraph("✓ %s: %v", what, got)
	return nil
}

// Wrong returns the error of a claim that does not hold.
func Wrong(format string, args ...any) error {
	return fmt.Errorf("the demo went wrong: "+format, args...)
}

// Same counts the objects that are in both maps with the same text.
func Same(before, after map[string]string) int {
	n := 0
	for key, text := range before {
		if after[key] == text {
			n++
		}
	}
	return n
}

// indented writes whole lines with an indentation, and keeps a copy of the output.
type indented struct {
	teller *Teller
	copy   bytes.Buffer
	rest   []byte
}

func (w *indented) Write(p []byte) (int, error) {
	w.copy.Write(p)
	w.rest = append(w.rest, p...)
	if end := bytes.LastIndexByte(w.rest, '\n'); end >= 0 {
		w.teller.Paragraph("%s", w.rest[:end])
		w.rest = append(w.rest[:0], w.rest[end+1:]...)
	}
	return len(p), nil
}
