package report

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit"
)

// Whatever became of the objects, a reader can add up the columns and gets their
// number.
func TestColumnsOfRunsAddUp(t *testing.T) {
	all := godwit.Counts{Migrated: 1, Unchanged: 2, Skipped: 3, Gone: 4, Deferred: 5, Failed: 6}
	cases := map[string]godwit.Counts{
		"resumed":    {Migrated: 7, Skipped: 13},
		"deleted":    {Migrated: 7, Gone: 2},
		"conflicts":  {Migrated: 7, Deferred: 3},
		"everything": all,
		"nothing":    {},
	}
	for name, counts := range cases {
		for _, s := range []Style{{}, {Wide: true}} {
			var text bytes.Buffer
			runs := []CRDRunReport{{Name: "a.example.com", Objects: ObjectsOf(counts)}, {Name: "b.example.com", Objects: ObjectsOf(godwit.Counts{Migrated: 1})}}
			if err := WriteRuns(&text, s, runs, 0); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(text.String(), "\n")
			header := strings.Fields(lines[0])
			from, to := slices.Index(header, "OBJECTS"), slices.Index(header, "TRIMMED")
			for _, line := range lines[1:3] {
				// The result has a glyph and is two words; the storage version is a dash.
				line = strings.Replace(line, "a.example.com", "a.example.com result", 1)
				line = strings.Replace(line, "b.example.com", "b.example.com result", 1)
				row := strings.Fields(line)
				sum := 0
				for _, field := range row[from+1 : to] {
					n, err := strconv.Atoi(field)
					if err != nil {
						t.Fatal(err)
					}
					sum += n
				}
				if want, _ := strconv.Atoi(row[from]); sum != want {
					t.Errorf("%s, wide %v: the columns of %q add up to %d, and there are %d objects", name, s.Wide, line, sum, want)
				}
			}
		}
	}
}
