package planreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

var states = map[State]report.Cell{
	Clean:       {Text: "✓ Clean", Tone: report.Good},
	Ready:       {Text: "● Ready", Tone: report.Attention},
	InProgress:  {Text: "◐ InProgress", Tone: report.Attention},
	Blocked:     {Text: "✗ Blocked", Tone: report.Bad},
	Unknown:     {Text: "? Unknown", Tone: report.Bad},
	NotChecked:  {Text: "? NotChecked", Tone: report.Bad},
	Unreachable: {Text: "✗ Unreachable", Tone: report.Bad},
}

// maxBlockers bounds the blockers of a row below the table, unless it is wide.
const maxBlockers = 5

// WriteText writes a table, the blockers of each row with their remedies, and a sum. A wide table has
// a row for each object that is not Clean as well.
func WriteText(w io.Writer, s report.Style, l PlanList) error {
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

func table(rows []Row) *report.Table {
	t := &report.Table{Header: []string{"CLUSTER", "DOMAIN", "STATE", "CLEAN", "OBJECTS", "BLOCKED BY", "NEXT"}}
	for _, r := range rows {
		clean, total := "-", "-"
		if r.read() {
			clean, total = report.Number(r.Counts.Clean), report.Number(r.Counts.Total())
		}
		t.Add(report.Cell{Text: r.Cluster}, report.Cell{Text: string(r.Domain)}, states[r.State], report.Cell{Text: clean}, report.Cell{Text: total},
			report.Cell{Text: report.Words(r.Reasons())}, report.Cell{Text: report.OrDash(r.Next)})
	}
	return t
}

// read reports whether the objects of the row were read.
func (r Row) read() bool {
	return r.Counts.Total() > 0 || !slices.Contains([]State{Unknown, NotChecked, Unreachable}, r.State)
}

func writeObjects(w io.Writer, s report.Style, rows []Row) error {
	t := report.Table{Header: []string{"CLUSTER", "DOMAIN", "NAME", "STATE", "DETAIL", "NEXT"}}
	found := false
	for _, r := range rows {
		for _, o := range r.Objects {
			if o.State != Clean {
				found = true
				t.Add(report.Cell{Text: r.Cluster}, report.Cell{Text: string(r.Domain)}, report.Cell{Text: o.Name}, states[o.State],
					report.Cell{Text: report.OrDash(o.Detail)}, report.Cell{Text: report.OrDash(o.Next)})
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

func explain(text *strings.Builder, s report.Style, r Row) {
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
		fmt.Fprintf(text, "  … and %s; -o wide shows all\n", report.Count(more, "more blocker", "more blockers"))
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
	sum := report.Count(int64(len(clusters)), "cluster", "clusters") + ", " + report.Count(int64(len(rows)), "domain", "domains")
	if len(parts) > 0 {
		sum += ": " + strings.Join(parts, ", ")
	}
	return sum
}

var stateWords = map[State]string{
	Clean: "clean", Ready: "ready", InProgress: "in progress", Blocked: "blocked", Unknown: "unknown", NotChecked: "not checked", Unreachable: "unreachable",
}
