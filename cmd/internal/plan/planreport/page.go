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

// WriteHTML writes a page for a browser: a summary, bars for each row that the next commands change, a table of all rows, and
// a table of the objects of each domain.
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
		if r.Counts.Total() > 0 && r.Counts != r.After() {
			p.Bars = append(p.Bars, html.Bar{
				Label:  r.Cluster + ": " + string(r.Domain),
				Before: html.Stack{Name: "Before", Parts: Parts(r.Counts)}, After: html.Stack{Name: "After", Parts: Parts(r.After())},
			})
		}
	}
	p.Sections = append(p.Sections, html.Section{ID: "clusters", Title: "Clusters", Grid: rowTable.HTML(l.Items)})
	for _, d := range Domains[1:] {
		if s, found := domainSection(d, l.Items); found {
			p.Sections = append(p.Sections, s)
		}
	}
	return html.Write(w, p)
}

// tiles returns the number of clean clusters, and the number of rows by state.
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
	tone := render.Good
	if clean < len(dirty) {
		tone = render.Attention
	}
	all := []html.Tile{{Value: fmt.Sprintf("%d of %d", clean, len(dirty)), Label: "clusters are clean", Tone: tone}}
	for _, s := range States {
		if counts[s] > 0 {
			all = append(all, html.Tile{Value: render.Number(counts[s]), Label: "domains " + stateWords[s], Tone: states[s].Tone})
		}
	}
	return all
}

// Parts are counts as the parts of a bar.
func Parts(c Counts) []html.Part {
	return []html.Part{
		{Label: "clean", Count: c.Clean, Tone: render.Good}, {Label: "in progress", Count: c.InProgress, Tone: render.Faint},
		{Label: "ready", Count: c.Ready, Tone: render.Attention}, {Label: "blocked", Count: c.Blocked, Tone: render.Bad}, {Label: "unknown", Count: c.Unknown, Tone: render.Unsure},
	}
}

// domainSection is the table of the objects of a domain in all clusters, the most severe ones first.
func domainSection(d Domain, rows []Row) (html.Section, bool) {
	s := html.Section{ID: strings.ToLower(string(d)), Title: string(d)}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Domain != d })
	objects, leftOut := placed(rows), int64(0)
	for _, r := range rows {
		leftOut += r.ObjectsLeftOut
	}
	slices.SortStableFunc(objects, func(a, b placedObject) int { return Severity(a.State) - Severity(b.State) })
	s.Grid = objectTable.HTML(objects)
	switch {
	case leftOut > 0:
		s.Lead = render.Count(leftOut, "more object is", "more objects are") + " not in the table."
	case len(objects) == 0:
		s.Lead = "No object needs an action, or none could be read: see the table of the clusters."
	}
	return s, len(rows) > 0
}
