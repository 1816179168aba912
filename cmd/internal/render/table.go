package render

import (
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/godwit-dev/godwit"
)

// Cell is one entry of a table. The table measures the text and colours it afterwards.
// text/tabwriter cannot do that: it counts colour codes as text.
type Cell struct {
	Text string
	Tone Tone
}

// NumberCell returns a cell with a number.
func NumberCell(n int64) Cell { return Cell{Text: Number(n)} }

// Table is text in columns below a header.
type Table struct {
	Header []string
	rows   [][]Cell
}

// columnGap is kubectl's.
const columnGap = 3

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.rows = append(t.rows, cells) }

// Write writes nothing for a table without rows.
func (t *Table) Write(w io.Writer, s Style) error {
	if len(t.rows) == 0 {
		return nil
	}
	header := make([]Cell, len(t.Header))
	for i, text := range t.Header {
		header[i] = Cell{Text: text}
	}
	rows := append([][]Cell{header}, t.rows...)
	widths := make([]int, len(t.Header))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		for i, c := range row {
			text.WriteString(s.Paint(c.Tone, c.Text))
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text)+columnGap))
			}
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Words returns a list for one column, and a dash if it is empty.
func Words(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}

// OrDash returns a dash for an empty text.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// YesNo returns a boolean for a column.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Outcomes are the outcomes of objects that some have, as in "3 migrated".
func Outcomes(counts godwit.Counts) []string {
	var parts []string
	for _, c := range []struct {
		n    int64
		what string
	}{
		{counts.Migrated, "migrated"}, {counts.Unchanged, "unchanged"}, {counts.Skipped, "skipped"},
		{counts.Gone, "gone"}, {counts.Deferred, "deferred"}, {counts.Failed, "failed"},
	} {
		if c.n > 0 {
			parts = append(parts, Number(c.n)+" "+c.what)
		}
	}
	return parts
}

// Tally is a count for each name, as in "v1=2,v2=3".
func Tally(counts map[string]int64) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, name+"="+Number(counts[name]))
	}
	return Words(parts)
}
