package clusterreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// maxRows bounds the clusters without a problem in a table that is not wide.
const maxRows = 10

// aborted reports whether a user ended the migration: that its clusters are back is what was asked for.
func (m Migration) aborted() bool {
	return m.Phase == api.PhaseFailed && m.Reason == api.ReasonAborted.Name
}

// isUnreadable reports whether the state of the migration can't be read.
func (m Migration) isUnreadable() bool {
	return m.Reason == api.ReasonStateLost.Name || m.Reason == api.ReasonNewerFormat.Name
}

// phaseCell shows Completed, Failed and Aborted only when no work is left.
func phaseCell(m Migration) render.Cell {
	switch {
	case m.aborted() && m.Settled && m.Counts.Restored == m.Counts.Total:
		return render.Cell{Text: "✓ Aborted", Tone: render.Good}
	case m.aborted():
		return render.Cell{Text: "! Aborted", Tone: render.Attention}
	case m.isUnreadable():
		return render.Cell{Text: "✗ " + m.Reason, Tone: render.Bad}
	case m.Phase == "":
		return render.Cell{Text: "? NotObserved", Tone: render.Attention}
	case m.Phase == api.PhaseCompleted && m.Settled && m.Counts.Moved == m.Counts.Total:
		return render.Cell{Text: "✓ Completed", Tone: render.Good}
	case m.Phase == api.PhaseCompleted:
		return render.Cell{Text: "! Completed", Tone: render.Attention}
	case m.Phase == api.PhaseFailed:
		return render.Cell{Text: "✗ Failed", Tone: render.Bad}
	}
	return render.Cell{Text: "● " + string(m.Phase), Tone: render.Attention}
}

var states = map[hub.ClusterState]render.Cell{
	hub.Selected:   {Text: "● Selected", Tone: render.Attention},
	hub.Registered: {Text: "● Registered", Tone: render.Attention},
	hub.Moved:      {Text: "✓ Moved", Tone: render.Good},
	hub.Returning:  {Text: "! Returning", Tone: render.Bad},
	hub.Returned:   {Text: "! Returned", Tone: render.Bad},
	hub.Restored:   {Text: "! Restored", Tone: render.Bad},
	hub.Gone:       {Text: "! Gone", Tone: render.Attention},
	hub.Forgotten:  {Text: "! Forgotten", Tone: render.Bad},
}

// stateCell shows a cluster that is back as good if nothing was wrong with it: others failed, or a user ended the migration.
func stateCell(c Cluster) render.Cell {
	if c.State == hub.Restored && c.Message == "" {
		return render.Cell{Text: "✓ Restored", Tone: render.Good}
	}
	return states[c.State]
}

// headTable has the migration of a document with its clusters.
var headTable = render.Table[Migration]{
	{Name: "Name", Cell: func(m Migration) render.Cell { return render.TextCell(m.Name) }},
	{Name: "Phase", Cell: phaseCell},
	{Name: "From", Cell: func(m Migration) render.Cell { return render.TextCell(m.From) }},
	{Name: "To", Cell: func(m Migration) render.Cell { return render.TextCell(m.To) }},
	{Name: "Time", Cell: func(m Migration) render.Cell { return render.DurationCell(m.Seconds) }},
}

// migrationTable has several migrations, without their clusters.
var migrationTable = slices.Concat(
	render.Table[Migration]{{Name: "Namespace", Cell: func(m Migration) render.Cell { return render.TextCell(m.Namespace) }}},
	headTable[:4],
	render.Table[Migration]{
		{Name: "Total", Cell: func(m Migration) render.Cell { return render.NumberCell(m.Counts.Total) }},
		{Name: "Moved", Cell: func(m Migration) render.Cell { return render.NumberCell(m.Counts.Moved) }},
		{Name: "Failed", Cell: func(m Migration) render.Cell { return render.NumberCell(m.Counts.Failed) }},
		{Name: "Restored", Cell: func(m Migration) render.Cell { return render.NumberCell(m.Counts.Restored) }},
	},
	headTable[4:],
)

// clusterTable has the clusters of a migration.
var clusterTable = render.Table[Cluster]{
	{Name: "Cluster", Cell: func(c Cluster) render.Cell { return render.TextCell(c.Name) }},
	{Name: "State", Cell: stateCell},
	{Name: "Step", Cell: func(c Cluster) render.Cell { return render.TextCell(c.Step) }},
	{Name: "Hub", Cell: func(c Cluster) render.Cell { return render.TextCell(c.Hub) }},
	{Name: "Time", Cell: func(c Cluster) render.Cell { return render.DurationCell(c.Seconds) }},
	{Name: "Reason", Cell: func(c Cluster) render.Cell { return render.TextCell(c.Reason) }},
}

// WriteMigrations writes a row for each migration, and the causes of those that can't be read.
func WriteMigrations(w io.Writer, s render.Style, items []Migration) error {
	var text strings.Builder
	text.WriteString(migrationTable.Text(s, items))
	for _, m := range items {
		if m.isUnreadable() {
			text.WriteString(render.Below(m.Name, m.Lines(s, render.MarkBad)))
		}
	}
	fmt.Fprintf(&text, "%s\n", render.Count(int64(len(items)), "migration", "migrations"))
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteMigration writes the row of a migration, its clusters with a problem first, and a sum. A table
// that is not wide has only the first clusters without a problem.
func WriteMigration(w io.Writer, s render.Style, m Migration) error {
	var text strings.Builder
	text.WriteString(headTable.Text(s, []Migration{m}))
	shown := slices.Clone(m.Clusters)
	slices.SortStableFunc(shown, func(a, b Cluster) int { return problem(b) - problem(a) })
	plain := 0
	shown = slices.DeleteFunc(shown, func(c Cluster) bool {
		plain += 1 - problem(c)
		return problem(c) == 0 && plain > maxRows && !s.Wide
	})
	if len(shown) > 0 {
		text.WriteString("\n" + clusterTable.Text(s, shown))
	}
	for _, c := range shown {
		var lines strings.Builder
		if c.Message != "" {
			lines.WriteString(c.Lines(s, render.MarkBad))
		}
		for _, w := range c.Warnings {
			lines.WriteString(w.Lines(s, render.MarkAttention))
		}
		text.WriteString(render.Below(c.Name, lines.String()))
	}
	if hidden := len(m.Clusters) - len(shown); hidden > 0 {
		fmt.Fprintf(&text, "%s not shown; -o wide shows all\n", render.Count(int64(hidden), "cluster", "clusters"))
	}
	fmt.Fprintf(&text, "\n%s\n", migrationSum(m))
	_, err := io.WriteString(w, text.String())
	return err
}

func problem(c Cluster) int {
	if c.Message != "" || len(c.Warnings) > 0 {
		return 1
	}
	return 0
}

func migrationSum(m Migration) string {
	text := Progress(m)
	if m.Message != "" {
		text += "\n" + m.Line()
	}
	return text
}

// Progress returns the number of clusters by state, in one line.
func Progress(m Migration) string {
	parts := []string{fmt.Sprintf("%s of %s moved", render.Number(int64(m.Counts.Moved)), render.Count(int64(m.Counts.Total), "cluster", "clusters"))}
	phase, left := string(m.Phase), render.Part{N: int64(m.Counts.Failed), What: "failed"}
	switch {
	case phase == "":
		phase = reasonNotObserved
	case m.aborted():
		phase, left = api.ReasonAborted.Name, render.Part{N: int64(m.Counts.Failed - m.Counts.Restored), What: "not back yet"}
	}
	parts = append(parts, render.Parts([]render.Part{left, {N: int64(m.Counts.Restored), What: "back at " + m.From},
		{N: int64(m.Counts.Gone), What: "deleted by a user"}, {N: int64(m.Counts.Forgotten), What: "forgotten"}})...)
	return phase + ": " + strings.Join(parts, ", ")
}
