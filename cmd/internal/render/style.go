package render

import "github.com/fatih/color"

// Style is the style of text for users. Colour is never the only carrier of meaning: each coloured word has a glyph
// too.
type Style struct {
	Color bool
	// Wide adds columns.
	Wide bool
	// Width is the number of columns of the terminal; 0 means that text is not wrapped.
	Width int
}

// Tone is the meaning of a colour.
type Tone uint8

const (
	// Plain text has no colour.
	Plain Tone = iota
	// Good needs no action.
	Good
	// Attention is to be read.
	Attention
	// Bad needs an action.
	Bad
	// Faint is of little interest.
	Faint
	// Unsure is not known, and may need an action.
	Unsure
)

func (t Tone) String() string {
	return [...]string{Plain: "plain", Good: "good", Attention: "attention", Bad: "bad", Faint: "faint", Unsure: "unsure"}[t]
}

var attributes = map[Tone]color.Attribute{Good: color.FgGreen, Attention: color.FgYellow, Bad: color.FgRed, Faint: color.Faint, Unsure: color.FgMagenta}

// Paint colours a text, where the style has colours.
func (s Style) Paint(t Tone, text string) string {
	if !s.Color || t == Plain {
		return text
	}
	c := color.New(attributes[t])
	c.EnableColor() // Style decides for the stream; package color decides for the process
	return c.Sprint(text)
}
