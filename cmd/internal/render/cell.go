package render

import (
	"maps"
	"slices"
	"strings"
)

// Format is the output format of a table.
type Format uint8

const (
	// Text is for a terminal: aligned, with upper-case headers.
	Text Format = iota + 1
	// Markdown is for a comment on a change, or a page.
	Markdown
	// HTML is for a browser; package html writes it.
	HTML
)

// Cell is one entry of a table. Formats measure and escape the text, and colour it afterwards.
type Cell struct {
	// Text is a dash in all formats where it is empty.
	Text string
	// Words are the words of the text. A line of text joins them to one field, and a page can wrap between them.
	Words []string
	Tone  Tone
	// Code is a command or a name, to be copied as it is.
	Code bool
	// Problems are the problems that the text counts. An HTML page shows them on demand.
	Problems []ObjectProblem
}

// TextCell returns a cell with a text.
func TextCell[S ~string](s S) Cell { return Cell{Text: string(s)} }

// CodeCell returns a cell with text to be copied.
func CodeCell(s string) Cell { return Cell{Text: s, Code: true} }

// NumberCell returns a cell with a number.
func NumberCell[N int | int32 | int64](n N) Cell { return Cell{Text: Number(int64(n))} }

// CountCell returns a cell with a number; nil means that nothing was counted.
func CountCell(n *int64) Cell {
	if n == nil {
		return Cell{Text: "?"}
	}
	return NumberCell(*n)
}

// WordsCell returns a cell with a list.
func WordsCell[S ~string](list []S) Cell {
	words := make([]string, len(list))
	for i, one := range list {
		words[i] = string(one)
	}
	return Cell{Words: words}
}

// TallyCell returns a cell with a count for each name, as in "v1=2,v2=3".
func TallyCell(counts map[string]int64) Cell {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, name+"="+Number(counts[name]))
	}
	return WordsCell(parts)
}

// YesNoCell returns a cell with a boolean.
func YesNoCell(b bool) Cell {
	if b {
		return Cell{Text: "yes"}
	}
	return Cell{Text: "no"}
}

// DurationCell returns a cell with seconds.
func DurationCell(seconds float64) Cell { return Cell{Text: Duration(seconds)} }

// inFormat returns the cell with its text in a format.
func (c Cell) inFormat(f Format) Cell {
	if len(c.Words) == 0 {
		return c
	}
	separator := ", "
	if f == Text {
		separator = ","
	}
	c.Text = strings.Join(c.Words, separator)
	return c
}

// isEmpty reports whether a cell has no text, or a count of zero.
func (c Cell) isEmpty() bool { return c.Text == "" || c.Text == "0" }
