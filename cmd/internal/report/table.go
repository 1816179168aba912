package report

import (
	"io"
	"strings"
	"unicode/utf8"
)

// cell is one entry of a table. Its colour is applied after its width is
// known, which is why text/tabwriter does not serve here.
type cell struct {
	text string
	tone tone
}

type table struct {
	header []string
	rows   [][]cell
}

// columnGap is kubectl's.
const columnGap = 3

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// write prints nothing for a table without rows.
func (t *table) write(w io.Writer, s Style) error {
	if len(t.rows) == 0 {
		return nil
	}
	header := make([]cell, len(t.header))
	for i, text := range t.header {
		header[i] = cell{text: text}
	}
	rows := append([][]cell{header}, t.rows...)
	widths := make([]int, len(t.header))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		for i, c := range row {
			text.WriteString(s.paint(c.tone, c.text))
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+columnGap))
			}
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func words(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}
