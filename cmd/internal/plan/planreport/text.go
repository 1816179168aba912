package planreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var states = map[State]render.Cell{
	Clean:       {Text: "✓ Clean", Tone: render.Good},
	Ready:       {Text: "● Ready", Tone: render.Attention},
	InProgress:  {Text: "◐ InProgress", Tone: render.Attention},
	Blocked:     {Text: "✗ Blocked", Tone: render.Bad},
	Unknown:     {Text: "? Unknown", Tone: render.Bad},
	NotChecked:  {Text: "? NotChecked", Tone: render.Bad},
	Unreachable: {Text: "✗ Unreachable", Tone: render.Bad},
}

// maxBlockers bounds the blockers of a row below the table, unless it is wide.
const maxBlockers = 5

// WriteText writes a table, the blockers of each row with their remedies, and a sum. A wide table has
// a row for each object that is not Clean as well.
func WriteText(w io.Writer, s render.Style, l PlanList) error {
	if err := table(l.Items).Write(w, s); err != nil {
		return err
	}
	if s.Wide {
		if err := writeObjects(w, s, l.Items); err != nil {
			return err
		}
	}
	var text strings.Builder
	for _, r := range l.Items {
		explain(&text, s, r)
	}
	if len(l.Items) > 0 {
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%s\n", Sum(l.Items))
	for _, note := range l.Notes {
		fmt.Fprintf(&text, "%s\n", note)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func table(rows []Row) *render.Table {
	t := &render.Table{Header: []string{"CLUSTER", "DOMAIN", "STATE", "CLEAN", "OBJECTS", "BLOCKED BY", "NEXT"}}
	for _, r := range rows {
		clean, total := "-", "-"
		if r.read() {
			clean, total = render.Number(r.Counts.Clean), render.Number(r.Counts.Total())
		}
		t.Add(render.Cell{Text: r.Cluster}, render.Cell{Text: string(r.Domain)}, states[r.State], render.Cell{Text: clean}, render.Cell{Text: total},
			render.Cell{Text: render.Words(r.Reasons())}, render.Cell{Text: render.OrDash(r.Next)})
	}
	return t
}

// read reports whether the objects of the row were read.
func (r Row) read() bool {
	return r.Counts.Total() > 0 || !slices.Contains([]State{Unknown, NotChecked, Unreachable}, r.State)
}

func writeObjects(w io.Writer, s render.Style, rows []Row) error {
	t := render.Table{Header: []string{"CLUSTER", "DOMAIN", "NAME", "STATE", "DETAIL", "NEXT"}}
	found := false
	for _, r := range rows {
		for _, o := range r.Objects {
			if o.State != Clean {
				found = true
				t.Add(render.Cell{Text: r.Cluster}, render.Cell{Text: string(r.Domain)}, render.Cell{Text: o.Name}, states[o.State],
					render.Cell{Text: render.OrDash(o.Detail)}, render.Cell{Text: render.OrDash(o.Next)})
			}
		}
	}
	if !found {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return t.Write(w, s)
}

func explain(text *strings.Builder, s render.Style, r Row) {
	shown := r.Blockers
	if !s.Wide {
		shown = shown[:min(len(shown), maxBlockers)]
	}
	if len(shown) == 0 {
		return
	}
	fmt.Fprintf(text, "\n%s %s\n", r.Cluster, r.Domain)
	for _, b := range shown {
		object := ""
		if b.Object != "" && !strings.Contains(b.Message, b.Object) {
			object = b.Object + ": "
		}
		fmt.Fprintf(text, "  %s %s%s\n", s.Paint(states[r.State].Tone, "✗ "+b.Reason+":"), object, b.Message)
		if b.Remedy != "" {
			fmt.Fprintf(text, "    → %s\n", b.Remedy)
		}
	}
	if more := int64(len(r.Blockers) - len(shown)); more > 0 {
		fmt.Fprintf(text, "  … and %s; -o wide shows all\n", render.Count(more, "more blocker", "more blockers"))
	}
}

// Sum is the number of clusters and of rows by state, in one line.
func Sum(rows []Row) string {
	clusters := map[string]bool{}
	counts := map[State]int64{}
	for _, r := range rows {
		clusters[r.Cluster] = true
		counts[r.State]++
	}
	var parts []string
	for _, s := range slices.Backward(States) {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], stateWords[s]))
		}
	}
	sum := render.Count(int64(len(clusters)), "cluster", "clusters") + ", " + render.Count(int64(len(rows)), "domain", "domains")
	if len(parts) > 0 {
		sum += ": " + strings.Join(parts, ", ")
	}
	return sum
}

var stateWords = map[State]string{
	Clean: "clean", Ready: "ready", InProgress: "in progress", Blocked: "blocked", Unknown: "unknown", NotChecked: "not checked", Unreachable: "unreachable",
}
