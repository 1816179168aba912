package planreport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/html"
)

// WriteHTML writes a page for a browser: a summary, a bar for each row, a table of all rows, and a
// table of the objects of each domain.
func WriteHTML(w io.Writer, l PlanList) error {
	p := html.Page{
		Title:     "Plan of " + render.Count(clusters(l.Items), "cluster", "clusters"),
		Lead:      Sum(l.Items),
		Facts:     []html.Fact{{Name: "Read at", Value: l.Time.Format(time.RFC3339)}, {Name: "godwit", Value: l.Version}},
		Tiles:     tiles(l.Items),
		BarsTitle: "Before and after the next commands",
		BarsLead:  "The next commands do the work of every object that is ready. Blocked objects stay blocked until a user acts.",
	}
	for _, note := range l.Notes {
		p.Facts = append(p.Facts, html.Fact{Name: "Not shown", Value: note})
	}
	for _, r := range l.Items {
		if r.Counts.Total() > 0 {
			p.Bars = append(p.Bars, html.Bar{
				Label:  r.Cluster + ": " + string(r.Domain),
				Before: html.Stack{Name: "Before", Parts: Parts(r.Counts)}, After: html.Stack{Name: "After", Parts: Parts(r.After())},
			})
		}
	}
	p.Sections = append(p.Sections, Overview(l.Items))
	for _, d := range Domains[1:] {
		if s, found := domainSection(d, l.Items); found {
			p.Sections = append(p.Sections, s)
		}
	}
	return html.Write(w, p)
}

var tones = map[render.Tone]html.Tone{
	render.Plain: html.Plain, render.Good: html.Good, render.Attention: html.Attention, render.Bad: html.Bad, render.Faint: html.Faint,
}

// StateCell is a state with its colour and its mark.
func StateCell(s State) html.Cell {
	return html.Cell{Text: states[s].Text, Tone: tones[states[s].Tone]}
}

// tiles count the rows of each state that has some, and say first how many clusters are clean.
func tiles(rows []Row) []html.Tile {
	counts := map[State]int64{}
	dirty := map[string]bool{}
	for _, r := range rows {
		counts[r.State]++
		dirty[r.Cluster] = dirty[r.Cluster] || r.State != Clean
	}
	clean := 0
	for _, d := range dirty {
		if !d {
			clean++
		}
	}
	tone := html.Good
	if clean < len(dirty) {
		tone = html.Attention
	}
	all := []html.Tile{{Value: fmt.Sprintf("%d of %d", clean, len(dirty)), Label: "clusters are clean", Tone: tone}}
	for _, s := range States {
		if counts[s] > 0 {
			all = append(all, html.Tile{Value: render.Number(counts[s]), Label: "domains " + stateWords[s], Tone: tones[states[s].Tone]})
		}
	}
	return all
}

// Parts are counts as the parts of a bar.
func Parts(c Counts) []html.Part {
	return []html.Part{
		{Label: "clean", Count: c.Clean, Tone: html.Good}, {Label: "in progress", Count: c.InProgress, Tone: html.Faint},
		{Label: "ready", Count: c.Ready, Tone: html.Attention}, {Label: "blocked", Count: c.Blocked, Tone: html.Bad}, {Label: "unknown", Count: c.Unknown, Tone: html.Bad},
	}
}

// Overview is the table of all rows.
func Overview(rows []Row) html.Section {
	s := html.Section{ID: "clusters", Title: "Clusters", Columns: []string{"Cluster", "Domain", "State", "Clean", "Objects", "Blocked by", "Next command"}}
	for _, r := range rows {
		clean, total := "-", "-"
		if r.read() {
			clean, total = render.Number(r.Counts.Clean), render.Number(r.Counts.Total())
		}
		s.Rows = append(s.Rows, html.Row{Cells: []html.Cell{
			{Text: r.Cluster}, {Text: string(r.Domain)}, StateCell(r.State), {Text: clean}, {Text: total}, Findings(r.Blockers), {Text: r.Next, Code: true},
		}})
	}
	return s
}

// Findings fold blockers behind their reasons.
func Findings(blockers []Blocker) html.Cell {
	if len(blockers) == 0 {
		return html.Cell{Text: "-", Tone: html.Faint}
	}
	c := html.Cell{Tone: html.Bad, Text: strings.Join(Row{Blockers: blockers}.Reasons(), ", ")}
	if len(blockers) > 1 {
		c.Text = fmt.Sprintf("%d: %s", len(blockers), c.Text)
	}
	for _, b := range blockers {
		if strings.Contains(b.Message, b.Object) {
			b.Object = ""
		}
		c.Findings = append(c.Findings, html.Finding{Object: b.Object, Reason: b.Reason, Message: b.Message, Remedy: b.Remedy})
	}
	return c
}

// domainSection is the table of the objects of a domain in all clusters.
func domainSection(d Domain, rows []Row) (html.Section, bool) {
	s := html.Section{ID: strings.ToLower(string(d)), Title: string(d), Columns: []string{"Name", "Cluster", "State", "Detail", "Blocked by", "Next command"}}
	found, leftOut := false, int64(0)
	for _, r := range rows {
		if r.Domain != d {
			continue
		}
		found = true
		leftOut += r.ObjectsLeftOut
		for _, o := range r.Objects {
			s.Rows = append(s.Rows, html.Row{Cells: []html.Cell{
				{Text: o.Name}, {Text: r.Cluster}, StateCell(o.State), {Text: o.Detail}, Findings(o.Blockers), {Text: o.Next, Code: true},
			}})
		}
	}
	slices.SortStableFunc(s.Rows, func(a, b html.Row) int { return order(a) - order(b) })
	switch {
	case leftOut > 0:
		s.Lead = render.Count(leftOut, "more object is", "more objects are") + " not in the table."
	case len(s.Rows) == 0:
		s.Lead = "No object needs an action, or none could be read: see the table of the clusters."
	}
	return s, found
}

// order is that of the states, the most severe one first.
func order(r html.Row) int {
	return slices.IndexFunc(States, func(s State) bool { return states[s].Text == r.Cells[2].Text })
}
