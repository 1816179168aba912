package evidencereport

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/html"
)

// WriteHTML writes the report as a page for a browser.
func WriteHTML(w io.Writer, r Report) error {
	p := html.Page{
		Title: "Migration of " + r.Cluster, Lead: r.lead(),
		Facts:     []html.Fact{{Name: "Result", Value: string(r.Result)}, {Name: "godwit", Value: render.Words(r.Versions)}},
		Tiles:     r.tiles(),
		BarsTitle: "Before and after", BarsLead: "Before is the first plan, and after is the last document about each object.",
	}
	if n := len(r.Documents); n > 0 {
		p.Facts = append(p.Facts, html.Fact{Name: "First document", Value: r.Documents[0].when()}, html.Fact{Name: "Last document", Value: r.Documents[n-1].when()})
	}
	for _, d := range r.Domains {
		p.Bars = append(p.Bars, html.Bar{
			Label:  string(d.Name),
			Before: html.Stack{Name: "Before", Parts: planreport.Parts(d.Before)}, After: html.Stack{Name: "After", Parts: planreport.Parts(d.After)},
		})
	}
	for _, d := range planreport.Domains {
		if s := r.section(d); len(s.Rows) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	p.Sections = append(p.Sections, r.documents())
	if len(r.Unread) > 0 {
		p.Sections = append(p.Sections, r.unread())
	}
	return html.Write(w, p)
}

func (r Report) lead() string {
	return fmt.Sprintf("%s: %s, %d of %s clean.", r.Result, render.Count(int64(len(r.Documents)), "document", "documents"),
		r.clean(), render.Count(int64(len(r.Objects)), "object", "objects"))
}

func (r Report) clean() (n int) {
	for _, o := range r.Objects {
		if o.After == planreport.Clean {
			n++
		}
	}
	return n
}

func (r Report) proven() (n int64) {
	for _, o := range r.Objects {
		if strings.HasPrefix(o.Proof, "Proven") {
			n++
		}
	}
	return n
}

func (r Report) tiles() []html.Tile {
	left := int64(len(r.Objects) - r.clean())
	tone := func(bad bool) html.Tone {
		if bad {
			return html.Bad
		}
		return html.Good
	}
	return []html.Tile{
		{Value: string(r.Result), Label: "result", Tone: tone(r.Result != Complete)},
		{Value: render.Number(int64(r.clean())), Label: "objects are clean", Tone: html.Good},
		{Value: render.Number(left), Label: "objects are left", Tone: tone(left > 0)},
		{Value: render.Number(r.proven()), Label: "proven in etcd", Tone: html.Plain},
		{Value: render.Number(int64(len(r.Unread))), Label: "files not read", Tone: tone(len(r.Unread) > 0)},
	}
}

func (r Report) section(d planreport.Domain) html.Section {
	s := html.Section{ID: strings.ToLower(string(d)), Title: string(d), Columns: []string{"Name", "Before", "Run", "Numbers", "Proof", "After", "Blocked by"}}
	for _, o := range r.Objects {
		if o.Domain != d {
			continue
		}
		before := html.Cell{Text: "-", Tone: html.Faint}
		if o.Before != "" {
			before = planreport.StateCell(o.Before)
		}
		s.Rows = append(s.Rows, html.Row{Cells: []html.Cell{
			{Text: o.Name}, before, {Text: render.OrDash(o.Result)}, {Text: render.OrDash(o.Detail)}, {Text: render.OrDash(o.Proof)},
			planreport.StateCell(o.After), planreport.Findings(o.Blockers),
		}})
	}
	return s
}

func (d Document) when() string {
	text := d.Time.Format(time.RFC3339)
	if d.TimeOf == "File" {
		text += " (time of the file)"
	}
	return text
}

func (r Report) documents() html.Section {
	s := html.Section{ID: "documents", Title: "Documents", Columns: []string{"File", "Kind", "Time", "Items", "Duration"}}
	for _, d := range r.Documents {
		duration := "-"
		if d.DurationSeconds > 0 {
			duration = render.Duration(d.DurationSeconds)
		}
		s.Rows = append(s.Rows, html.Row{Cells: []html.Cell{{Text: d.File}, {Text: d.Kind}, {Text: d.when()}, {Text: render.Number(int64(d.Items))}, {Text: duration}}})
	}
	return s
}

func (r Report) unread() html.Section {
	s := html.Section{ID: "unread", Title: "Files that were not read", Columns: []string{"File", "Reason", "Message"}}
	for _, u := range r.Unread {
		s.Rows = append(s.Rows, html.Row{Cells: []html.Cell{{Text: u.File}, {Text: u.Reason, Tone: html.Bad}, {Text: u.Message}}})
	}
	return s
}
