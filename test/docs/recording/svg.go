package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hinshun/vt10x"
)

// Sizes in pixels.
const (
	charWidth = 8.4
	rowHeight = 18
	border    = 14
	bar       = 34 // with the title
)

// blocks has the opacity of each character of a progress bar. The SVG draws them as rectangles, because fonts have gaps between
// them.
var blocks = map[rune]float64{'█': 1, '▓': .75, '▒': .5, '░': .22}

// colors has the class of each ANSI colour. The rest of the 256 colours have the colour of text.
var colors = map[vt10x.Color]string{
	vt10x.Black: "k", vt10x.Red: "r", vt10x.Green: "g", vt10x.Yellow: "y", vt10x.Blue: "b", vt10x.Magenta: "m", vt10x.Cyan: "c", vt10x.LightGrey: "f",
	vt10x.DarkGrey: "f", vt10x.LightRed: "r", vt10x.LightGreen: "g", vt10x.LightYellow: "y", vt10x.LightBlue: "b", vt10x.LightMagenta: "m",
	vt10x.LightCyan: "c", vt10x.White: "k",
}

// style has the colours in light and dark. Each has a contrast of at least 4.5 to the background.
const style = `svg{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;color:#1f2328;--w:#f6f8fa;--t:#59636e;--e:#d1d9e0}
text{fill:currentColor;white-space:pre}.w{fill:var(--w);stroke:var(--e)}.t{fill:var(--t);text-anchor:middle}.d{fill:var(--e)}.k{fill:currentColor}.h{font-weight:700}
.r{fill:#b3261e}.g{fill:#116329}.y{fill:#7d4e00}.b{fill:#0550ae}.m{fill:#8250df}.c{fill:#0b5563}.f{fill:#59636e}rect.p{fill:#0b5563}
@media(prefers-color-scheme:dark){svg{color:#e6edf3;--w:#0d1117;--t:#9198a1;--e:#3d444d}
.r{fill:#ff7b72}.g{fill:#3fb950}.y{fill:#d29922}.b{fill:#79c0ff}.m{fill:#d2a8ff}.c{fill:#7cd3e4}.f{fill:#9198a1}rect.p{fill:#56b6c9}}
`

// still is the style that shows the end to a reader who prefers no motion.
const still = "@media(prefers-reduced-motion:reduce){.a,.v{animation:none!important}.z{visibility:visible}.v{transform:translateY(%dpx)}}\n"

// render writes the SVG of a recording. The window has the rows of the terminal.
func render(c cast) ([]byte, error) {
	f, err := play(c)
	if err != nil {
		return nil, err
	}
	if len(f.lines) == 0 {
		return nil, fmt.Errorf("the recording of %s shows nothing", c.header.Title)
	}
	d := drawing{film: f, total: f.end() + hold}
	width := int(float64(c.header.Width)*charWidth) + 2*border
	inner := c.header.Height*rowHeight + 6
	height := bar + inner + border/2
	fmt.Fprintf(&d.out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"><title>%s</title><style>`, width, height, width, height,
		html.EscapeString("A recording of "+c.header.Title))
	d.style()
	fmt.Fprintf(&d.out, "</style>\n"+`<rect class="w" x=".5" y=".5" width="%d" height="%d" rx="8"/>`, width-1, height-1)
	for i := range 3 {
		fmt.Fprintf(&d.out, `<circle class="d" cx="%d" cy="17" r="5.500"/>`, 20+i*18)
	}
	fmt.Fprintf(&d.out, `<text class="t" x="%d" y="22">%s</text>`, width/2, html.EscapeString(c.header.Title))
	fmt.Fprintf(&d.out, "\n"+`<svg x="0" y="%d" width="%d" height="%d"><g class="v">`+"\n", bar, width, inner)
	for _, l := range d.film.lines {
		d.line(l)
	}
	d.out.WriteString("</g></svg></svg>\n")
	return d.out.Bytes(), nil
}

// end returns the time of the last change.
func (f film) end() time.Duration {
	last := slices.MaxFunc(f.lines, func(a, b shown) int { return cmp.Compare(a.from, b.from) })
	return last.from
}

type drawing struct {
	film  film
	total time.Duration
	out   bytes.Buffer
}

// interval is the time in which a line is visible.
type interval struct{ from, to time.Duration }

// style writes the animations: one for each time in which lines are seen, and one for the window.
func (d *drawing) style() {
	d.out.WriteString(style)
	fmt.Fprintf(&d.out, ".a{visibility:hidden;animation:%gs step-end infinite}.v{animation:v %gs step-end infinite}\n", d.total.Seconds(), d.total.Seconds())
	seen := map[interval]bool{}
	for _, l := range d.film.lines {
		i := interval{l.from, l.to}
		if seen[i] {
			continue
		}
		seen[i] = true
		fmt.Fprintf(&d.out, "@keyframes %s{%s{visibility:visible}", i.name(), d.percent(i.from))
		if i.to > 0 {
			fmt.Fprintf(&d.out, "%s{visibility:hidden}", d.percent(i.to))
		}
		d.out.WriteString("}\n")
	}
	d.out.WriteString("@keyframes v{")
	last := 0
	for _, s := range d.film.scrolls {
		last = -s.first * rowHeight
		fmt.Fprintf(&d.out, "%s{transform:translateY(%dpx)}", d.percent(s.at), last)
	}
	fmt.Fprintf(&d.out, "to{transform:translateY(%dpx)}}\n", last)
	fmt.Fprintf(&d.out, still, last)
}

func (i interval) name() string {
	return "a" + strconv.FormatInt(i.from.Milliseconds(), 36) + "-" + strconv.FormatInt(i.to.Milliseconds(), 36)
}

func (d *drawing) percent(at time.Duration) string {
	return number(100*float64(at)/float64(d.total)) + "%"
}

func number(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 2, 64), "0"), ".")
}

// line draws a row: bars as rectangles, and each piece of text at its column, whatever the widths of the font are.
func (d *drawing) line(l shown) {
	i := interval{l.from, l.to}
	class := "a"
	if l.to == 0 {
		class = "a z"
	}
	fmt.Fprintf(&d.out, `<g class="%s" style="animation-name:%s">`, class, i.name())
	y := l.row*rowHeight + 15
	var text strings.Builder
	for _, p := range pieces(l.cells) {
		x := number(border + float64(p.col)*charWidth)
		first, _ := utf8.DecodeRuneInString(p.text)
		if opacity, ok := blocks[first]; ok {
			fmt.Fprintf(&d.out, `<rect class="p" x="%s" y="%d" width="%s" height="12" opacity="%s"/>`, x, y-11,
				number(float64(utf8.RuneCountInString(p.text))*charWidth), number(opacity))
			continue
		}
		fmt.Fprintf(&text, `<tspan x="%s"%s>%s</tspan>`, x, p.class(), html.EscapeString(p.text))
	}
	if text.Len() > 0 {
		fmt.Fprintf(&d.out, `<text y="%d">%s</text>`, y, text.String())
	}
	d.out.WriteString("</g>\n")
}

// piece is text of one colour and weight without two blanks, or a part of a bar.
type piece struct {
	col   int
	text  string
	color vt10x.Color
	bold  bool
}

// bold is the mode of a bold glyph, for which vt10x has no name.
const bold = 1 << 2

// class is the attribute with the classes of a piece; empty without any.
func (p piece) class() string {
	var classes []string
	if class, ok := colors[p.color]; ok {
		classes = append(classes, class)
	}
	if p.bold {
		classes = append(classes, "h")
	}
	if len(classes) == 0 {
		return ""
	}
	return ` class="` + strings.Join(classes, " ") + `"`
}

func pieces(cells []vt10x.Glyph) (all []piece) {
	var p piece
	end := func() {
		if p.text = strings.TrimRight(p.text, " "); p.text != "" {
			all = append(all, p)
		}
		p.text = ""
	}
	for col, cell := range cells {
		isBold := cell.Mode&bold != 0
		if p.text != "" && (cell.FG != p.color || isBold != p.bold || apart(p.text, cell.Char)) {
			end()
		}
		if p.text == "" {
			if cell.Char == ' ' {
				continue
			}
			p.col, p.color, p.bold = col, cell.FG, isBold
		}
		p.text += string(cell.Char)
	}
	end()
	return all
}

// apart reports whether a character begins a new piece: after two blanks, and where a font may have another width.
func apart(text string, next rune) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	_, drawnLast := blocks[last]
	_, drawnNext := blocks[next]
	switch {
	case drawnLast || drawnNext:
		return last != next
	case strings.HasSuffix(text, "  "):
		return true
	}
	return (last >= utf8.RuneSelf) != (next >= utf8.RuneSelf)
}
