package planreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// maxBlockers bounds the blockers of a row below the table, unless it is wide.
const maxBlockers = 5

// WriteText writes a table, the blockers of each row with their remedies and its next command, and a sum. A wide table has
// a row for each object that is not Clean as well.
func WriteText(w io.Writer, s render.Style, l PlanList) error {
	var text strings.Builder
	text.WriteString(rowTable.Text(s, l.Items))
	if objects := slices.DeleteFunc(placed(l.Items), func(o placedObject) bool { return o.State == Clean }); s.Wide && len(objects) > 0 {
		text.WriteString("\n" + objectTable.Text(s, objects))
	}
	for _, r := range l.Items {
		explain(&text, s, r)
	}
	if len(l.Items) > 0 {
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%s\n", Sum(l.Items))
	for _, note := range l.Notes {
		text.WriteString(s.Note(note))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func explain(text *strings.Builder, s render.Style, r Row) {
	shown := r.Blockers
	if !s.Wide {
		shown = shown[:min(len(shown), maxBlockers)]
	}
	var lines strings.Builder
	for _, b := range shown {
		b.Message = b.Sentence()
		lines.WriteString(b.Lines(s, render.Cell{Text: render.MarkBad.Text, Tone: states[r.State].Tone}))
	}
	if more := int64(len(r.Blockers) - len(shown)); more > 0 {
		fmt.Fprintf(&lines, "  … and %s; -o wide shows all\n", render.Count(more, "more blocker", "more blockers"))
	}
	if ready := r.ready(); len(ready) > 0 && r.State != Ready {
		lines.WriteString(s.RemedyLines(2, fmt.Sprintf("%d of %d can begin, such as: %s", len(ready), r.Counts.Total(), ready[0].Next)))
	}
	if r.Next != "" {
		lines.WriteString(s.RemedyLines(2, "next: "+r.Next))
	}
	text.WriteString(render.Below(r.Cluster+" "+string(r.Domain), lines.String()))
}

// ready are the objects of the row that a run would begin, which an object that is blocked does not prevent.
func (r Row) ready() []Object {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(o Object) bool { return o.State != Ready || o.Next == "" })
}

// ToDo names what is not Clean, as CLUSTER/DOMAIN/NAME, and a row that has no objects as CLUSTER/DOMAIN.
func ToDo(rows []Row) []string {
	var names []string
	for _, r := range rows {
		row := r.Cluster + "/" + string(r.Domain)
		of := slices.DeleteFunc(slices.Clone(r.Objects), func(o Object) bool { return o.State == Clean })
		for _, o := range of {
			names = append(names, row+"/"+o.Name)
		}
		if len(of) == 0 && r.State != Clean {
			names = append(names, row)
		}
	}
	return names
}

// LeftOut is the number of objects that the rows don't have.
func LeftOut(rows []Row) int64 {
	more := int64(0)
	for _, r := range rows {
		more += r.ObjectsLeftOut
	}
	return more
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
