package stage

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
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
	// style makes headings and commands bold, and marks green, as godwit does.
	style bool
	// width is the number of columns of the terminal; 0 without one.
	width int
}

// Escape sequences.
const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	plain = "\x1b[0m"
)

// colours are the escape sequences of coloured text.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func (t *Teller) styled(sequence, text string) string {
	if !t.style {
		return text
	}
	return sequence + text + plain
}

// widthOf is the number of columns of a terminal; 0 for another stream.
func widthOf(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// hasColour reports whether a stream shows colours, by the rules of no-color.org.
func hasColour(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Chapter prints the heading of the next chapter, with the time since the story began.
func (t *Teller) Chapter(title string) {
	t.chapters++
	heading := fmt.Sprintf("%d. %s", t.chapters, title)
	t.write("\n" + t.styled(bold, fmt.Sprintf("%-*s", headingWidth, heading)) + fmt.Sprintf(" %7s\n", elapsed(time.Since(t.began))))
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
		for piece := range t.wrapped(line) {
			if piece != "\n" {
				text.WriteString(indent)
			}
			text.WriteString(piece)
		}
	}
	t.write(text.String())
}

// wrapped yields the lines of a terminal for a line of text, which break between words. A table breaks where the terminal does.
func (t *Teller) wrapped(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		room := t.width - len(indent)
		for room > 0 && utf8.RuneCountInString(colours.ReplaceAllString(line, "")) > room+1 {
			end := strings.LastIndexByte(line[:min(room, len(line))], ' ')
			if end <= 0 || strings.Contains(line, "   ") {
				break
			}
			if !yield(line[:end] + "\n") {
				return
			}
			line = line[end+1:]
		}
		yield(line)
	}
}

// Command writes a command line as a user types it.
func (t *Teller) Command(line string) { t.Paragraph("%s", t.styled(bold, "$ "+line)) }

// Mark writes what the story has checked.
func (t *Teller) Mark(format string, args ...any) {
	t.Paragraph("%s %s", t.styled(green, "✓"), fmt.Sprintf(format, args...))
}

// Line writes a line at the margin.
func (t *Teller) Line(format string, args ...any) { t.write(fmt.Sprintf(format, args...) + "\n") }

func (t *Teller) write(text string) { _, _ = io.WriteString(t.out, text) }

// Claim prints the claim that got is want, or returns an error if it is not.
func Claim[T comparable](t *Teller, what string, got, want T) error {
	if got != want {
		return Wrong("%s: %v, and it should be %v", what, got, want)
	}
	t.Mark("%s: %v", what, got)
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
