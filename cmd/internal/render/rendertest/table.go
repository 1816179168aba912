package rendertest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Columns fails the test if a column of a table shows a value that the JSON of its row does not have, or is empty for
// all rows of the sample.
func Columns[T any](t *testing.T, table render.Table[T], sample T) {
	t.Helper()
	text, err := json.Marshal(sample)
	if err != nil {
		t.Fatal(err)
	}
	var read T
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	for _, f := range []render.Format{render.Text, render.Markdown, render.HTML} {
		g := table.In(f, true, []T{sample, read})
		for i, name := range g.Header {
			shown := g.Rows[0][i]
			if shown.Text == "" || shown.Text == "0" {
				t.Errorf("column %s of %T shows nothing of the sample", name, sample)
			}
			if diff := cmp.Diff(shown, g.Rows[1][i]); diff != "" {
				t.Errorf("column %s of %T is not in the JSON of the row (-row +JSON):\n%s", name, sample, diff)
			}
		}
	}
}
