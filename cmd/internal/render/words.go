package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/godwit-dev/godwit"
)

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

// terminal measures text as most terminals draw it, also where the locale is East Asian: the marks are narrow.
var terminal = &runewidth.Condition{}

// columns is the number of columns of a text in a terminal: wide characters have two.
func columns(text string) int { return terminal.StringWidth(text) }

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

// Words returns a list for one column, and a dash if it is empty.
func Words(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}

// OrDash returns a dash for an empty text.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Part is a part of a sum.
type Part struct {
	N    int64
	What string
}

// Parts returns the parts of a sum that are not zero, as in "3 migrated".
func Parts(all []Part) []string {
	var parts []string
	for _, p := range all {
		if p.N > 0 {
			parts = append(parts, Number(p.N)+" "+p.What)
		}
	}
	return parts
}

// Outcomes returns the outcomes that are not zero, as in "3 migrated".
func Outcomes(counts godwit.Counts) []string {
	return Parts([]Part{
		{counts.Migrated, "migrated"}, {counts.Unchanged, "unchanged"}, {counts.Skipped, "skipped"},
		{counts.Gone, "gone"}, {counts.Deferred, "deferred"}, {counts.Failed, "failed"},
	})
}
