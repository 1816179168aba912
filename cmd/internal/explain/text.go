package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/reason"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// list returns the list that `godwit explain` prints.
func list(items []reason.Explanation) render.List[reason.Explanation] {
	return render.NewList("ReasonList", items)
}

// writeParagraphs writes a paragraph for each subject of a reason.
func writeParagraphs(w io.Writer, items []reason.Explanation) error {
	var text strings.Builder
	for i, r := range items {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s (%s)\n", r.Reason, r.Where)
		rows := [][2]string{{"Meaning", r.Meaning}, {"What to do", whatToDo(r)}}
		if len(r.Conditions) > 0 {
			rows = append(rows, [2]string{"Condition", strings.Join(r.Conditions, " or ")})
		}
		if len(r.EventTypes) > 0 {
			rows = append(rows, [2]string{"Event", strings.Join(r.EventTypes, " or ")})
		}
		for _, row := range rows {
			fmt.Fprintf(&text, "  %-12s%s\n", row[0]+":", row[1])
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// whatToDo has a line for each way, if there are several.
func whatToDo(r reason.Explanation) string {
	if len(r.Ways) < 2 {
		return r.Remedy
	}
	return "one of these\n    - " + strings.Join(r.Ways, "\n    - ")
}

// writeTable writes a row for each reason.
func writeTable(w io.Writer, items []reason.Explanation) error {
	var text strings.Builder
	width := 0
	for _, r := range items {
		width = max(width, len(r.Reason))
	}
	for _, r := range items {
		fmt.Fprintf(&text, "%-*s  %s\n", width, r.Reason, r.Meaning)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
