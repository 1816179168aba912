package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type bird struct {
	name, command string
	colours       []string
	eggs, broken  int
}

var birds = Table[bird]{
	{Name: "Nest", Except: HTML, Cell: func(bird) Cell { return TextCell("reed") }},
	{Name: "Name", Key: true, Cell: func(b bird) Cell { return Cell{Text: b.name, Tone: Good} }},
	{Name: "Colours", Cell: func(b bird) Cell { return WordsCell(b.colours) }},
	{Name: "Eggs", Wide: true, Cell: func(b bird) Cell { return NumberCell(b.eggs) }},
	{Name: "Broken", IfAny: true, Cell: func(b bird) Cell { return NumberCell(b.broken) }},
	{Name: "Next", Cell: func(b bird) Cell { return CodeCell(b.command) }},
}

var twoBirds = []bird{
	{name: "godwit", colours: []string{"red", "brown"}, eggs: 1200, command: "ring a | weigh `b`"},
	{name: "r_ff|", command: "look"},
}

func TestText(t *testing.T) {
	broken := slices.Clone(twoBirds)
	broken[1].broken = 3
	for reason, c := range map[string]struct {
		style Style
		rows  []bird
		want  string
	}{
		"no rows have no header": {Style{}, nil, ""},
		"columns are aligned, and a column that says nothing is left out": {Style{}, twoBirds, `
NEST   NAME     COLOURS     NEXT
reed   godwit   red,brown   ring a | weigh ${b}
reed   r_ff|    -           look
`},
		"a column is shown if one row has something in it": {Style{}, broken, `
NEST   NAME     COLOURS     BROKEN   NEXT
reed   godwit   red,brown   0        ring a | weigh ${b}
reed   r_ff|    -           3        look
`},
		"wide text has all columns": {Style{Wide: true}, twoBirds, `
NEST   NAME     COLOURS     EGGS    BROKEN   NEXT
reed   godwit   red,brown   1,200   0        ring a | weigh ${b}
reed   r_ff|    -           0       0        look
`},
		"colours do not count": {Style{Color: true}, twoBirds[1:], `
NEST   NAME    COLOURS   NEXT
reed   ${green}r_ff|${plain}   -         look
`},
	} {
		want := strings.NewReplacer("${b}", "`b`", "${green}", "\x1b[32m", "${plain}", "\x1b[0m").Replace(strings.TrimPrefix(c.want, "\n"))
		if diff := cmp.Diff(want, birds.Text(c.style, c.rows)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// TestMarkdown: text of others ends no cell, and a command is copied as it is.
func TestMarkdown(t *testing.T) {
	want := "| Nest | Name | Colours | Eggs | Broken | Next |\n|---|---|---|---|---|---|\n" +
		"| reed | godwit | red, brown | 1,200 | 0 | `` ring a \\| weigh `b` `` |\n| reed | r\\_ff\\| | - | 0 | 0 | `look` |\n"
	if diff := cmp.Diff(want, birds.Markdown(twoBirds)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestColumnIsInEachFormat: a column is declared once, and in each format that it does not except.
func TestColumnIsInEachFormat(t *testing.T) {
	for format, want := range map[Format][]string{
		Text:     {"Nest", "Name", "Colours", "Eggs", "Broken", "Next"},
		Markdown: {"Nest", "Name", "Colours", "Eggs", "Broken", "Next"},
		HTML:     {"Name", "Colours", "Eggs", "Broken", "Next"},
	} {
		g := birds.In(format, true, twoBirds)
		if diff := cmp.Diff(want, g.Header); diff != "" {
			t.Errorf("format %d (-want +got):\n%s", format, diff)
		}
		if g.Header[g.Key] != "Name" {
			t.Errorf("format %d: rows are named by %s", format, g.Header[g.Key])
		}
	}
}
