package clusterreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// maxRows bounds the clusters without a problem in a table that is not wide.
const maxRows = 10

// phaseCell is Completed and Failed only when nothing is left to do.
func phaseCell(m Migration) report.Cell {
	switch {
	case m.Phase == "":
		return report.Cell{Text: "? NotObserved", Tone: report.Attention}
	case m.Phase == api.PhaseCompleted && m.Settled && m.Counts.Moved == m.Counts.Total:
		return report.Cell{Text: "✓ Completed", Tone: report.Good}
	case m.Phase == api.PhaseCompleted:
		return report.Cell{Text: "! Completed", Tone: report.Attention}
	case m.Phase == api.PhaseFailed:
		return report.Cell{Text: "✗ Failed", Tone: report.Bad}
	}
	return report.Cell{Text: "● " + string(m.Phase), Tone: report.Attention}
}

var states = map[hub.ClusterState]report.Cell{
	hub.Selected:   {Text: "● Selected", Tone: report.Attention},
	hub.Registered: {Text: "● Registered", Tone: report.Attention},
	hub.Moved:      {Text: "✓ Moved", Tone: report.Good},
	hub.Returning:  {Text: "! Returning", Tone: report.Bad},
	hub.Returned:   {Text: "! Returned", Tone: report.Bad},
	hub.Restored:   {Text: "! Restored", Tone: report.Bad},
}

// WriteMigrations writes a row for each migration.
func WriteMigrations(w io.Writer, s report.Style, items []Migration) error {
	t := report.Table{Header: []string{"NAMESPACE", "NAME", "PHASE", "FROM", "TO", "TOTAL", "MOVED", "FAILED", "RESTORED", "TIME"}}
	for _, m := range items {
		t.Add(report.Cell{Text: m.Namespace}, report.Cell{Text: m.Name}, phaseCell(m), report.Cell{Text: m.From}, report.Cell{Text: m.To},
			report.NumberCell(int64(m.Counts.Total)), report.NumberCell(int64(m.Counts.Moved)), report.NumberCell(int64(m.Counts.Failed)),
			report.NumberCell(int64(m.Counts.Restored)), report.Cell{Text: report.Duration(m.Seconds)})
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n", report.Count(int64(len(items)), "migration", "migrations"))
	return err
}

// WriteMigration writes the row of a migration, its clusters with a problem first, and a sum. A table
// that is not wide has only the first clusters without a problem.
func WriteMigration(w io.Writer, s report.Style, m Migration) error {
	head := report.Table{Header: []string{"NAME", "PHASE", "FROM", "TO", "TIME"}}
	head.Add(report.Cell{Text: m.Name}, phaseCell(m), report.Cell{Text: m.From}, report.Cell{Text: m.To}, report.Cell{Text: report.Duration(m.Seconds)})
	if err := head.Write(w, s); err != nil {
		return err
	}
	shown := slices.Clone(m.Clusters)
	slices.SortStableFunc(shown, func(a, b Cluster) int { return problem(b) - problem(a) })
	plain := 0
	shown = slices.DeleteFunc(shown, func(c Cluster) bool {
		plain += 1 - problem(c)
		return problem(c) == 0 && plain > maxRows && !s.Wide
	})
	t := report.Table{Header: []string{"CLUSTER", "STATE", "HUB", "TIME", "REASON"}}
	for _, c := range shown {
		t.Add(report.Cell{Text: c.Name}, states[c.State], report.Cell{Text: report.OrDash(c.Hub)}, report.Cell{Text: report.Duration(c.Seconds)}, report.Cell{Text: report.OrDash(c.Reason)})
	}
	if len(shown) > 0 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, c := range shown {
		if c.Message != "" {
			fmt.Fprintf(&text, "\n%s\n  %s %s\n", c.Name, s.Paint(report.Bad, "✗ "+report.OrDash(c.Reason)+":"), c.Message)
		}
	}
	if hidden := len(m.Clusters) - len(shown); hidden > 0 {
		fmt.Fprintf(&text, "%s not shown; -o wide shows all\n", report.Count(int64(hidden), "cluster", "clusters"))
	}
	fmt.Fprintf(&text, "\n%s\n", migrationSum(m))
	_, err := io.WriteString(w, text.String())
	return err
}

func problem(c Cluster) int {
	if c.Message != "" {
		return 1
	}
	return 0
}

func migrationSum(m Migration) string {
	text := Progress(m)
	if m.Message != "" {
		text += "\n" + m.Reason + ": " + m.Message
	}
	return text
}

// Progress is what has become of the clusters, in one line.
func Progress(m Migration) string {
	parts := []string{fmt.Sprintf("%s of %s moved", report.Number(int64(m.Counts.Moved)), report.Count(int64(m.Counts.Total), "cluster", "clusters"))}
	if m.Counts.Failed > 0 {
		parts = append(parts, report.Number(int64(m.Counts.Failed))+" failed")
	}
	if m.Counts.Restored > 0 {
		parts = append(parts, report.Number(int64(m.Counts.Restored))+" back at "+m.From)
	}
	phase := string(m.Phase)
	if phase == "" {
		phase = reasonNotObserved
	}
	return phase + ": " + strings.Join(parts, ", ")
}
