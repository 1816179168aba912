package render

import (
	"slices"
	"strings"
)

// Column is one column of a table of T, in every format.
type Column[T any] struct {
	// Name is the header. Text has it in upper case.
	Name string
	// Wide columns are in text only if it is wide. Other formats have no limit of width.
	Wide bool
	// IfAny omits the column from text that is not wide if it is empty in all rows.
	IfAny bool
	// Key means that the cell names its row; by default, the first column does.
	Key bool
	// Except is a format without this column, because it shows the same outside the table; 0 means none.
	Except Format
	Cell   func(T) Cell
}

// Table declares the columns of a table of T, once for all formats.
type Table[T any] []Column[T]

// Grid has the cells of a table in one format.
type Grid struct {
	Header []string
	// Key is the index of the column that names a row.
	Key  int
	Rows [][]Cell
}

// In returns the cells of rows in a format. all includes wide columns and empty columns.
func (t Table[T]) In(f Format, all bool, rows []T) Grid {
	g := Grid{Rows: make([][]Cell, len(rows))}
	for _, c := range t {
		if c.Except == f || c.Wide && !all {
			continue
		}
		cells := make([]Cell, len(rows))
		for i, row := range rows {
			cells[i] = c.Cell(row).inFormat(f)
		}
		if c.IfAny && !all && !slices.ContainsFunc(cells, func(c Cell) bool { return !c.isEmpty() }) {
			continue
		}
		if c.Key {
			g.Key = len(g.Header)
		}
		g.Header = append(g.Header, c.Name)
		for i, cell := range cells {
			g.Rows[i] = append(g.Rows[i], cell)
		}
	}
	return g
}

// HTML returns the cells of rows for a page.
func (t Table[T]) HTML(rows []T) Grid { return t.In(HTML, true, rows) }

// Text returns rows below a header, or empty without rows.
func (t Table[T]) Text(s Style, rows []T) string {
	if len(rows) == 0 {
		return ""
	}
	return t.In(Text, s.Wide, rows).text(s)
}

// columnGap is kubectl's.
const columnGap = 3

// text aligns the columns. text/tabwriter can't do that: it counts colour codes as text.
func (g Grid) text(s Style) string {
	header := make([]Cell, len(g.Header))
	for i, name := range g.Header {
		header[i] = Cell{Text: strings.ToUpper(name)}
	}
	rows := append([][]Cell{header}, g.Rows...)
	widths := make([]int, len(g.Header))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], columns(OrDash(c.Text)))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		for i, c := range row {
			c.Text = OrDash(c.Text)
			text.WriteString(s.Paint(c.Tone, c.Text))
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-columns(c.Text)+columnGap))
			}
		}
		text.WriteByte('\n')
	}
	return text.String()
}
