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

// width is that of a usual terminal.
const width = 80

// writeNames writes the names of the reasons by the commands and objects that have them.
func writeNames(w io.Writer, groups []reason.Group) error {
	var text strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&text, "%s\n", g.Where)
		line := " "
		for i, r := range g.Reasons() {
			name := r.Name
			if i < len(g.Reasons())-1 {
				name += ","
			}
			if len(line)+1+len(name) > width {
				text.WriteString(line + "\n")
				line = " "
			}
			line += " " + name
		}
		text.WriteString(line + "\n\n")
	}
	text.WriteString("Explain one: godwit explain REASON. Explain an error message: godwit explain 'MESSAGE'\n")
	_, err := io.WriteString(w, text.String())
	return err
}
