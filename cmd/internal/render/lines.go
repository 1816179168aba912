package render

import "strings"

// Marks of problems in text.
var (
	// MarkBad marks a problem that needs an action.
	MarkBad = Cell{Text: "✗", Tone: Bad}
	// MarkAttention marks a warning.
	MarkAttention = Cell{Text: "!", Tone: Attention}
	// MarkUnknown marks a fact that is not known and blocks an action.
	MarkUnknown = Cell{Text: "?", Tone: Unsure}
	// MarkNote marks a note that needs no action.
	MarkNote = Cell{Text: "·", Tone: Faint}
)

// Indents of the lines below the name of an object: of its problems, of their further lines, and of remedies.
const (
	problemIndent = 2
	remedyIndent  = 4
)

// Marked returns a text after a mark and what it is about, below the name of an object.
func (s Style) Marked(mark Cell, about, text string) string {
	lead := Cell{Text: strings.Repeat(" ", problemIndent) + mark.Text + " " + about + ":", Tone: mark.Tone}
	return s.Wrap(lead, remedyIndent, text)
}

// Lines are the cause below the name of its object.
func (c Cause) Lines(s Style, mark Cell) string { return s.Marked(mark, OrDash(c.Reason), c.Message) }

// Lines are the problem below the name of its object, with the remedy on lines of its own.
func (p Problem) Lines(s Style, mark Cell) string {
	return Cause{p.Reason, p.Message}.Lines(s, mark) + s.RemedyLines(remedyIndent, p.Remedy)
}

// Below returns the text below a table for one row: its name, and lines. It returns empty without lines.
func Below(name, lines string) string {
	if lines == "" {
		return ""
	}
	return "\n" + name + "\n" + lines
}

// ObjectName is the name of an object after its namespace, if it has one.
func ObjectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
