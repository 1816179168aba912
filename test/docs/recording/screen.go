package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/hinshun/vt10x"
)

// tallest is the number of rows of the terminal on which a recording is played. No line scrolls out of it, so that each row is
// a line of the output. The SVG shows the last rows.
const tallest = 500

// shown is the text of a row during a time.
type shown struct {
	row      int
	cells    []vt10x.Glyph
	from, to time.Duration // to is 0 for text that stays to the end
}

// scroll is the first row of the window since a time.
type scroll struct {
	at    time.Duration
	first int
}

// film is what the terminal shows.
type film struct {
	lines   []shown
	scrolls []scroll
}

// play plays a recording.
func play(c cast) (f film, err error) {
	terminal := vt10x.New(vt10x.WithSize(c.header.Width, tallest))
	current := map[int]int{} // index in lines, by row
	first := 0
	for _, e := range pace(c.events) {
		if _, err := terminal.Write([]byte(e.text)); err != nil {
			return f, fmt.Errorf("play the recording: %w", err)
		}
		bottom := terminal.Cursor().Y
		if bottom >= tallest-1 {
			return f, fmt.Errorf("the recording has more than %d lines", tallest)
		}
		// An output changes no row far above the cursor: progress is drawn over a few rows.
		for row := max(0, bottom-c.header.Height); row <= bottom+1; row++ {
			f.set(current, row, cells(terminal, row, c.header.Width), e.at)
		}
		// The row after a line break is in the window when it has text.
		if last := bottom - c.header.Height; last >= 0 && terminal.Cursor().X > 0 {
			last++
			first = max(first, last)
		} else {
			first = max(first, last)
		}
		if len(f.scrolls) == 0 || f.scrolls[len(f.scrolls)-1].first != first {
			f.scrolls = append(f.scrolls, scroll{e.at, first})
		}
	}
	f.lines = slices.DeleteFunc(f.lines, func(s shown) bool { return len(s.cells) == 0 || s.to != 0 && s.to <= s.from })
	return f, nil
}

// set sets the text of a row from a time on.
func (f *film) set(current map[int]int, row int, cells []vt10x.Glyph, at time.Duration) {
	if i, ok := current[row]; ok {
		if slices.Equal(f.lines[i].cells, cells) {
			return
		}
		f.lines[i].to = max(at, 1) // 0 is never
	}
	current[row] = len(f.lines)
	f.lines = append(f.lines, shown{row: row, cells: cells, from: at})
}

// cells returns the cells of a row, without the blanks at its end.
func cells(terminal vt10x.Terminal, row, cols int) []vt10x.Glyph {
	all := make([]vt10x.Glyph, cols)
	end := 0
	for col := range cols {
		g := terminal.Cell(col, row)
		if g.Char == 0 {
			g.Char = ' '
		}
		all[col] = g
		if g.Char != ' ' || g.BG != vt10x.DefaultBG {
			end = col + 1
		}
	}
	return all[:end]
}
