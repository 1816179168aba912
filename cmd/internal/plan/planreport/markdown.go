package planreport

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// WriteMarkdown writes a page: a table of all rows, and a list of the blockers of each.
func WriteMarkdown(w io.Writer, l PlanList) error {
	var text strings.Builder
	fmt.Fprintf(&text, "# Plan of %s\n\nRead at %s by godwit %s. %s.\n\n", render.Count(clusters(l.Items), "cluster", "clusters"), l.Time.Format(time.RFC3339), l.Version, Sum(l.Items))
	for _, note := range l.Notes {
		fmt.Fprintf(&text, "%s\n\n", render.MarkdownText(note))
	}
	text.WriteString(rowTable.Markdown(l.Items))
	for _, r := range l.Items {
		if len(r.Blockers) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n## %s: %s\n\n", render.MarkdownText(r.Cluster), r.Domain)
		for _, b := range r.Blockers {
			fmt.Fprintf(&text, "- **%s** %s", b.Reason, render.MarkdownText(b.Sentence()))
			if b.Remedy != "" {
				fmt.Fprintf(&text, "\n\n  %s\n", render.MarkdownCode(b.Remedy))
			} else {
				text.WriteByte('\n')
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func clusters(rows []Row) int64 {
	names := map[string]bool{}
	for _, r := range rows {
		names[r.Cluster] = true
	}
	return int64(len(names))
}
