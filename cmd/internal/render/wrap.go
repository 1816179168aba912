package render

import (
	"strconv"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Wrap returns words in lines no wider than the style, each ended by a line break: the first after lead, the others indented as
// hang. It never breaks a word, nor text in backquotes, which is a name or a command: a longer one has a line of its own. A
// style without a width has one line.
func (s Style) Wrap(lead Cell, hang int, words string) string {
	var text strings.Builder
	mark := strings.TrimLeft(lead.Text, " ")
	text.WriteString(lead.Text[:len(lead.Text)-len(mark)] + s.Paint(lead.Tone, mark))
	column, began := columns(lead.Text), lead.Text == "" || strings.HasSuffix(lead.Text, " ")
	for word := range strings.FieldsSeq(unbroken(words)) {
		width := columns(word)
		switch {
		case began:
			began = false
		case s.Width > 0 && column+1+width > s.Width:
			text.WriteString("\n" + strings.Repeat(" ", hang))
			column = hang
		default:
			text.WriteByte(' ')
			column++
		}
		text.WriteString(strings.ReplaceAll(word, noBreak, " "))
		column += width
	}
	text.WriteByte('\n')
	return text.String()
}

// noBreak stands for a space within a word, while text is wrapped.
const noBreak = "\x00"

// unbroken makes one word of each text in backquotes.
func unbroken(text string) string {
	parts := strings.Split(text, "`")
	for i := 1; i < len(parts)-1; i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], " ", noBreak)
	}
	return strings.Join(parts, "`")
}

// RemedyLines are the ways of a remedy after an arrow, numbered if there are several. Each command has a line of its own, and
// is never wrapped.
func (s Style) RemedyLines(indent int, text string) string {
	ways := remedy.Ways(text)
	var lines strings.Builder
	for i, way := range ways {
		lead := strings.Repeat(" ", indent) + "→ "
		if i > 0 {
			lead = strings.Repeat(" ", indent) + "  "
		}
		if len(ways) > 1 {
			lead += strconv.Itoa(i+1) + ". "
		}
		hang := columns(lead)
		for k, step := range way {
			if k > 0 {
				lead = strings.Repeat(" ", hang)
				step.Text = "then " + step.Text
			}
			s.stepLines(&lines, lead, hang, step)
		}
	}
	return lines.String()
}

// Note is a sentence that may end with a command, which has a line of its own.
func (s Style) Note(text string) string {
	var lines strings.Builder
	for _, way := range remedy.Ways(text) {
		for _, step := range way {
			s.stepLines(&lines, "", 0, step)
		}
	}
	return lines.String()
}

// commandIndent is what a command is indented below its words.
const commandIndent = 2

func (s Style) stepLines(lines *strings.Builder, lead string, hang int, step remedy.Step) {
	if step.Text == "" {
		lines.WriteString(lead + step.Command + "\n")
		return
	}
	lines.WriteString(s.Wrap(Cell{Text: lead}, hang, step.Text))
	if step.Command != "" {
		lines.WriteString(strings.Repeat(" ", hang+commandIndent) + step.Command + "\n")
	}
}
