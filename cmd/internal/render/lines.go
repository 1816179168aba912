package render

import (
	"fmt"
)

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

// Lines are the cause below the name of its object.
func (c Cause) Lines(s Style, mark Cell) string {
	return fmt.Sprintf("  %s %s\n", s.Paint(mark.Tone, mark.Text+" "+OrDash(c.Reason)+":"), c.Message)
}

// Lines are the problem below the name of its object, with the remedy on a line of its own.
func (p Problem) Lines(s Style, mark Cell) string {
	text := Cause{p.Reason, p.Message}.Lines(s, mark)
	if p.Remedy != "" {
		text += "    → " + p.Remedy + "\n"
	}
	return text
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
