package render

import (
	"fmt"
	"strconv"
	"time"

	"github.com/fatih/color"
)

// Style says how text for people looks. Colour never carries the meaning alone: each
// coloured word has a glyph, and is printed without colour as well.
type Style struct {
	Color bool
	// Wide adds columns.
	Wide bool
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
)

var attributes = map[Tone]color.Attribute{Good: color.FgGreen, Attention: color.FgYellow, Bad: color.FgRed, Faint: color.Faint}

// Paint colours a text, where the style has colours.
func (s Style) Paint(t Tone, text string) string {
	if !s.Color || t == Plain {
		return text
	}
	c := color.New(attributes[t])
	c.EnableColor() // Style decides for the stream; package color decides for the process
	return c.Sprint(text)
}

// Number returns n with its digits grouped by thousands.
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(digits) - 3; i > first; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// CRDs returns a number and the noun for CRDs.
func CRDs(n int64) string { return Count(n, "customresourcedefinition", "customresourcedefinitions") }

// Count returns a number and its noun.
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}

// Duration returns a duration with tenths of a second if it is below a minute.
func Duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
