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
		fmt.Fprintf(&text, "%s\n\n", markdown(note))
	}
	text.WriteString("| Cluster | Domain | State | Clean | Objects | Blocked by | Next |\n|---|---|---|---|---|---|---|\n")
	for _, r := range l.Items {
		clean, total := "-", "-"
		if r.read() {
			clean, total = render.Number(r.Counts.Clean), render.Number(r.Counts.Total())
		}
		cells := []string{markdown(r.Cluster), string(r.Domain), states[r.State].Text, clean, total, markdown(render.Words(r.Reasons())), code(r.Next)}
		fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | "))
	}
	for _, r := range l.Items {
		if len(r.Blockers) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n## %s: %s\n\n", markdown(r.Cluster), r.Domain)
		for _, b := range r.Blockers {
			fmt.Fprintf(&text, "- **%s** %s", b.Reason, markdown(b.Message))
			if b.Remedy != "" {
				fmt.Fprintf(&text, "\n\n  %s\n", code(b.Remedy))
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

var markdownEscapes = strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, `\`, `\\`)

// markdown is text of others, without a meaning in Markdown.
func markdown(text string) string { return markdownEscapes.Replace(text) }

// code is a command or a remedy, which must be copied as it is. Its fence is longer than any run of
// backticks within it.
func code(text string) string {
	if text == "" {
		return "-"
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", `\|`)
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}
