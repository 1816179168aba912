package evidencereport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// WriteText writes a row for each cluster, the files that were not read, and a sum.
func WriteText(w io.Writer, s render.Style, reports []Report) error {
	var text strings.Builder
	text.WriteString(reportTable.Text(s, reports))
	complete := 0
	for _, r := range reports {
		if r.Result == Complete {
			complete++
		}
		for _, u := range r.Unread {
			text.WriteString(render.Below(u.File, u.Lines(s, render.MarkBad)))
		}
	}
	fmt.Fprintf(&text, "\n%s: %d complete\n", render.Count(int64(len(reports)), "cluster", "clusters"), complete)
	_, err := io.WriteString(w, text.String())
	return err
}
