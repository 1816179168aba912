package evidencereport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var results = map[Result]render.Cell{
	Complete: {Text: "✓ Complete", Tone: render.Good}, Incomplete: {Text: "✗ Incomplete", Tone: render.Bad},
}

// WriteText writes a row for each cluster, the files that were not read, and a sum.
func WriteText(w io.Writer, s render.Style, reports []Report) error {
	t := render.Table{Header: []string{"CLUSTER", "RESULT", "DOCUMENTS", "OBJECTS", "CLEAN", "PROVEN", "NOT READ"}}
	complete := 0
	for _, r := range reports {
		if r.Result == Complete {
			complete++
		}
		t.Add(render.Cell{Text: r.Cluster}, results[r.Result], render.NumberCell(int64(len(r.Documents))), render.NumberCell(int64(len(r.Objects))),
			render.NumberCell(int64(r.clean())), render.NumberCell(r.proven()), render.NumberCell(int64(len(r.Unread))))
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range reports {
		for _, u := range r.Unread {
			fmt.Fprintf(&text, "\n%s\n  %s %s\n", u.File, s.Paint(render.Bad, "✗ "+u.Reason+":"), u.Message)
		}
	}
	fmt.Fprintf(&text, "\n%s: %d complete\n", render.Count(int64(len(reports)), "cluster", "clusters"), complete)
	_, err := io.WriteString(w, text.String())
	return err
}
