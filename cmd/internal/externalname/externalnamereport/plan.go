package externalnamereport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/quote"
)

var actions = map[fleet.Action]render.Cell{
	fleet.Skip:   {Text: "✗ Skip", Tone: render.Bad},
	fleet.Resume: {Text: "● Resume", Tone: render.Attention},
	fleet.Rename: {Text: "● Rename", Tone: render.Attention},
	fleet.None:   {Text: "✓ None", Tone: render.Good},
}

// actionOrder is the order of the table: what needs the user comes first.
var actionOrder = []fleet.Action{fleet.Skip, fleet.Resume, fleet.Rename, fleet.None}

// columnBytes bounds what a column shows of a name.
const columnBytes = 60

// WritePlan writes a table, the reasons below it, and a sum. Managed resources that need nothing are only
// counted, unless the table is wide.
func WritePlan(w io.Writer, s render.Style, items []Plan) error {
	shown := slices.DeleteFunc(slices.Clone(items), func(p Plan) bool { return p.Action == fleet.None && !s.Wide })
	slices.SortStableFunc(shown, func(a, b Plan) int {
		return slices.Index(actionOrder, a.Action) - slices.Index(actionOrder, b.Action)
	})
	t := render.Table{Header: []string{"ACTION", "NAMESPACE", "NAME", "CLASS", "CURRENT", "PROPOSED", "REASON"}}
	if s.Wide {
		t.Header = append(t.Header, "OWNER")
	}
	for _, p := range shown {
		row := []render.Cell{
			actions[p.Action], {Text: render.OrDash(p.Namespace)}, {Text: p.Name}, {Text: classText(p)},
			{Text: nameText(p.Current)}, {Text: nameText(p.Proposed)}, {Text: render.OrDash(p.Reason)},
		}
		if s.Wide {
			row = append(row, render.Cell{Text: render.OrDash(p.Owner)})
		}
		t.Add(row...)
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range shown {
		if p.Reason == "" || p.Action == fleet.None {
			continue
		}
		writeReason(&text, s, key(p.Namespace, p.Name), finding{p.Reason, p.Message, p.Remedy, render.Bad})
	}
	if len(shown) > 0 {
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%s\n", planSum(items))
	_, err := io.WriteString(w, text.String())
	return err
}

func classText(p Plan) string {
	if p.Form == "" {
		return string(p.Class)
	}
	return fmt.Sprintf("%s{%s}", p.Class, p.Form)
}

// nameText shows outer spaces and control characters.
func nameText(name string) string {
	quoted := fmt.Sprintf("%q", name)
	switch {
	case name == "":
		return "-"
	case quoted != `"`+name+`"` || strings.TrimSpace(name) != name:
		return quote.Clip(quoted, columnBytes)
	}
	return quote.Clip(name, columnBytes)
}

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// finding is why something is not done.
type finding struct {
	reason, message, remedy string
	tone                    render.Tone
}

func writeReason(text *strings.Builder, s render.Style, object string, f finding) {
	mark := "✗"
	if f.tone == render.Attention {
		mark = "!"
	}
	fmt.Fprintf(text, "\n%s\n  %s %s\n", object, s.Paint(f.tone, mark+" "+f.reason+":"), f.message)
	if f.remedy != "" {
		fmt.Fprintf(text, "    → %s\n", f.remedy)
	}
}

func planSum(items []Plan) string {
	counts := map[fleet.Action]int64{}
	for _, p := range items {
		counts[p.Action]++
	}
	parts := []string{render.Number(counts[fleet.None]) + " need nothing"}
	for _, part := range []struct {
		action fleet.Action
		what   string
	}{{fleet.Rename, "to rename"}, {fleet.Resume, "to resume"}, {fleet.Skip, "skipped"}} {
		if n := counts[part.action]; n > 0 {
			parts = append(parts, render.Number(n)+" "+part.what)
		}
	}
	return render.Count(int64(len(items)), "managed resource", "managed resources") + ": " + strings.Join(parts, ", ")
}
