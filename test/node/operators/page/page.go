// Package page writes the table of docs/reference/operators.md, one row for each upgrade that a test has run. It has no row that no
// test has measured.
package page

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	begin = "<!-- begin of the table that make e2e-operators writes -->\n"
	end   = "<!-- end of the table -->"
)

// columns are the titles of the table.
var columns = []string{"operator", "releases", "objects", "time of the migration", "lost", "also"}

// Row is what a test has measured.
type Row struct {
	// Operator is the key of the row.
	Operator string
	// Releases are in the order in which they were installed.
	Releases []string
	// Objects were compared before and after, and Lost of them are not what they were.
	Objects, Lost int
	// GivenUp has how many values of each field are gone by consent.
	GivenUp map[string]int
	// Took is how long the migration took, with the time that it waits for API servers.
	Took time.Duration
	// Also is what else the test has proven.
	Also string
}

func (r Row) line() string {
	return lineOf([]string{r.Operator, strings.Join(r.Releases, " → "), fmt.Sprint(r.Objects), r.Took.Round(time.Second).String(), r.lost(), r.Also})
}

func (r Row) lost() string {
	var lost []string
	if r.Lost > 0 {
		lost = append(lost, fmt.Sprintf("**%d objects**", r.Lost))
	}
	values := 0
	for _, of := range r.GivenUp {
		values += of
	}
	if values > 0 {
		fields := strings.Join(slices.Sorted(maps.Keys(r.GivenUp)), ", ")
		lost = append(lost, fmt.Sprintf("%d values that were given up by consent: %s", values, fields))
	}
	if len(lost) == 0 {
		return "nothing"
	}
	return strings.Join(lost, "; ")
}

func lineOf(cells []string) string {
	clean := make([]string, len(cells))
	for i, c := range cells {
		clean[i] = strings.ReplaceAll(strings.Join(strings.Fields(c), " "), "|", "/")
	}
	return "| " + strings.Join(clean, " | ") + " |"
}

// With returns the text of a page with a row, which replaces an older one of the same operator. Rows are in the order of their operators.
func With(text string, r Row) (string, error) {
	before, rest, found := strings.Cut(text, begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("find the table between the lines %q and %q: it is not there", strings.TrimSpace(begin), end)
	}
	head := lineOf(columns) + "\n|" + strings.Repeat("---|", len(columns)) + "\n"
	var rows []string
	if old, same := strings.CutPrefix(table, head); same { // else the columns have changed
		for line := range strings.Lines(old) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "| "+r.Operator+" |") {
				rows = append(rows, line)
			}
		}
	}
	rows = append(rows, r.line())
	slices.Sort(rows)
	return before + begin + head + strings.Join(rows, "\n") + "\n" + end + after, nil
}

// Write writes a row into the page at a path.
func Write(path string, r Row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the page of operators: %w", err)
	}
	with, err := With(string(text), r)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(with), 0o644) //nolint:gosec // a page of the documentation
}
