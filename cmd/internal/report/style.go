package report

import (
	"strconv"

	"github.com/fatih/color"
)

// Style says how text for people looks. Meaning never rests on colour alone:
// every coloured word is there without the colour, and has its glyph.
type Style struct {
	Color bool
	// Wide adds columns.
	Wide bool
}

// tone is the meaning of a colour.
type tone uint8

const (
	plain tone = iota
	good
	attention
	bad
	faint
)

var attributes = map[tone]color.Attribute{good: color.FgGreen, attention: color.FgYellow, bad: color.FgRed, faint: color.Faint}

func (s Style) paint(t tone, text string) string {
	if !s.Color || t == plain {
		return text
	}
	c := color.New(attributes[t])
	c.EnableColor() // whether there is colour was decided for the stream, not for the process
	return c.Sprint(text)
}

// Number groups the digits of n by thousands.
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

// CRDs is a number of CustomResourceDefinitions.
func CRDs(n int64) string { return Count(n, "customresourcedefinition", "customresourcedefinitions") }

// Count is a number and its noun.
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}
