package clusterreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var decisions = map[preflight.Decision]render.Cell{
	preflight.Ready:      {Text: "✓ Ready", Tone: render.Good},
	preflight.NotChecked: {Text: "? NotChecked", Tone: render.Attention},
	preflight.AtRisk:     {Text: "! AtRisk", Tone: render.Attention},
	preflight.Blocked:    {Text: "✗ Blocked", Tone: render.Bad},
}

// decisionOrder is the order of the tables: what needs the user comes first.
var decisionOrder = []preflight.Decision{preflight.Blocked, preflight.AtRisk, preflight.NotChecked, preflight.Ready}

var candidateTable = render.Table[Candidate]{
	{Name: "Cluster", Cell: func(c Candidate) render.Cell { return render.TextCell(c.Name) }},
	{Name: "Decision", Cell: func(c Candidate) render.Cell { return decisions[c.Decision] }},
	{Name: "Reason", Cell: func(c Candidate) render.Cell { return render.WordsCell(reasonsOf(c)) }},
}

// WritePreflight writes the checks that are not Ready with their remedies, then the clusters that are
// not Ready with their reasons, and a sum. A wide table has a row for each check and each cluster.
func WritePreflight(w io.Writer, s render.Style, p Preflight) error {
	checks := slices.DeleteFunc(slices.Clone(p.Checks), func(c Check) bool { return c.Decision == preflight.Ready && !s.Wide })
	slices.SortStableFunc(checks, func(a, b Check) int { return order(a.Decision) - order(b.Decision) })
	var text strings.Builder
	for _, c := range checks {
		writeCheck(&text, s, c)
	}
	if len(checks) > 0 {
		text.WriteByte('\n')
	}
	clusters := slices.DeleteFunc(slices.Clone(p.Clusters), func(c Candidate) bool { return c.Decision == preflight.Ready && !s.Wide })
	slices.SortStableFunc(clusters, func(a, b Candidate) int { return order(a.Decision) - order(b.Decision) })
	text.WriteString(candidateTable.Text(s, clusters))
	for _, c := range clusters {
		writeCandidate(&text, s, c, p.Checks)
	}
	if len(clusters) > 0 {
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%s\n", preflightSum(p))
	_, err := io.WriteString(w, text.String())
	return err
}

func order(d preflight.Decision) int { return slices.Index(decisionOrder, d) }

func writeCheck(text *strings.Builder, s render.Style, c Check) {
	cell := decisions[c.Decision]
	if c.Decision == preflight.Ready {
		fmt.Fprintf(text, "%s  %s\n", s.Paint(cell.Tone, "✓"), c.Name)
		return
	}
	text.WriteString(s.Wrap(render.Cell{Text: cell.Text + " " + c.Name + ":", Tone: cell.Tone}, 2, c.Message))
	text.WriteString(s.RemedyLines(2, c.Remedy))
}

// reasonsOf are the reasons of a row, each once.
func reasonsOf(c Candidate) []string {
	var all []string
	for _, f := range slices.Concat(c.Reasons, c.AtRisk) {
		if !slices.Contains(all, f.Reason) {
			all = append(all, f.Reason)
		}
	}
	return all
}

// writeCandidate writes the findings of a cluster that are not those of a check.
func writeCandidate(text *strings.Builder, s render.Style, c Candidate, checks []Check) {
	var lines strings.Builder
	for _, f := range c.Reasons {
		if !slices.ContainsFunc(checks, func(check Check) bool { return check.Reason == f.Reason && check.Message == f.Message }) {
			lines.WriteString(f.Lines(s, render.MarkBad))
		}
	}
	for _, f := range c.AtRisk {
		lines.WriteString(f.Lines(s, render.MarkAttention))
	}
	text.WriteString(render.Below(c.Name, lines.String()))
}

func preflightSum(p Preflight) string {
	move := "to " + p.To
	if p.From != "" {
		move = "from " + p.From + " " + move
	}
	if len(p.Clusters) == 0 {
		return "no cluster is known to move " + move
	}
	counts := map[preflight.Decision]int64{}
	for _, c := range p.Clusters {
		counts[c.Decision]++
	}
	parts := render.Parts([]render.Part{
		{N: counts[preflight.Ready], What: "ready"}, {N: counts[preflight.NotChecked], What: "not checked on both hubs"},
		{N: counts[preflight.AtRisk], What: "at risk"}, {N: counts[preflight.Blocked], What: "blocked"},
	})
	return render.Count(int64(len(p.Clusters)), "cluster", "clusters") + " " + move + ": " + strings.Join(parts, ", ")
}
