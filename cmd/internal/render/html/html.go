// Package html writes a report as one HTML file that needs no network: tiles, bars, and tables of package
// render with search. It is pure: values in, text out, and it knows no domain.
//
// All text is escaped. A content security policy in the file allows the style and the script of this
// package by their hashes, and nothing else: no request, no form, no other script. Without JavaScript
// the file has the same content, no search and no buttons. On a narrow window a row is a card, so that
// nothing scrolls sideways.
//
// Read table.go and html.go, then page.tmpl, style.css and script.js.
package html

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Page is a report.
type Page struct {
	Title string
	// Lead is the result in one sentence.
	Lead  string
	Facts []Fact
	Tiles []Tile
	Bars  []Bar
	// BarsTitle and BarsLead say what the bars compare.
	BarsTitle, BarsLead string
	Sections            []Section
}

// Fact is a line below the title.
type Fact struct{ Name, Value string }

// Tile is a number of the summary.
type Tile struct {
	Value, Label string
	Tone         render.Tone
}

// Bar compares two states of the same things.
type Bar struct {
	Label         string
	Before, After Stack
}

// Stack is one bar of parts.
type Stack struct {
	Name  string
	Parts []Part
}

// Part is a part of a bar.
type Part struct {
	Label string
	Count int64
	Tone  render.Tone
}

// Section is a table with a heading.
type Section struct {
	ID, Title, Lead string
	render.Grid
}

//go:embed page.tmpl
var pageTemplate string

//go:embed style.css
var style string

//go:embed script.js
var script string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"text": textOf, "segments": segments, "table": tableOf, "breakable": breakable, "words": words, "ways": ways,
}).Parse(pageTemplate))

// hash returns the source that allows an inline element in a content security policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Write writes the page.
func Write(w io.Writer, p Page) error {
	return page.Execute(w, struct {
		Page
		Policy string
		Style  template.CSS
		Script template.JS
	}{
		p, fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", hash(style), hash(script)),
		template.CSS(style), template.JS(script), //nolint:gosec // both are files of this package
	})
}

// textOf returns a bar in words, for screen readers.
func textOf(s Stack) string {
	var parts []string
	for _, p := range s.Parts {
		if p.Count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.Count, p.Label))
		}
	}
	if len(parts) == 0 {
		return s.Name + ": nothing"
	}
	return s.Name + ": " + strings.Join(parts, ", ")
}

// barWidth is the width of a whole bar, in units of its drawing.
const barWidth = 600

// segment is a part of a bar as it is drawn.
type segment struct {
	X, Width float64
	Tone     render.Tone
}

// segments returns the segments of a bar. A small part has a least width, so that it is visible.
func segments(s Stack) []segment {
	var total int64
	for _, p := range s.Parts {
		total += p.Count
	}
	const least = 3
	var all []segment
	x := 0.0
	for _, p := range s.Parts {
		if p.Count == 0 {
			continue
		}
		width := max(least, barWidth*float64(p.Count)/float64(total))
		all = append(all, segment{x, width, p.Tone})
		x += width
	}
	for i := range all { // the least widths must not make the bar longer
		all[i].X, all[i].Width = all[i].X*barWidth/x, all[i].Width*barWidth/x
	}
	return all
}
