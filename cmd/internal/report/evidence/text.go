package evidence

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

var results = map[Result]report.Cell{
	Complete: {Text: "✓ Complete", Tone: report.Good}, Incomplete: {Text: "✗ Incomplete", Tone: report.Bad},
}

// WriteText writes a row for each cluster, the files that were not read, and a sum.
func WriteText(w io.Writer, s report.Style, reports []Report) error {
	t := report.Table{Header: []string{"CLUSTER", "RESULT", "DOCUMENTS", "OBJECTS", "CLEAN", "PROVEN", "NOT READ"}}
	complete := 0
	for _, r := range reports {
		if r.Result == Complete {
			complete++
		}
		t.Add(report.Cell{Text: r.Cluster}, results[r.Result], report.NumberCell(int64(len(r.Documents))), report.NumberCell(int64(len(r.Objects))),
			report.NumberCell(int64(r.clean())), report.NumberCell(r.proven()), report.NumberCell(int64(len(r.Unread))))
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range reports {
		for _, u := range r.Unread {
			fmt.Fprintf(&text, "\n%s\n  %s %s\n", u.File, s.Paint(report.Bad, "✗ "+u.Reason+":"), u.Message)
		}
	}
	fmt.Fprintf(&text, "\n%s: %d complete\n", report.Count(int64(len(reports)), "cluster", "clusters"), complete)
	_, err := io.WriteString(w, text.String())
	return err
}
