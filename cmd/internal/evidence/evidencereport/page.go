package evidencereport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/html"
)

// WriteHTML writes the report as a page for a browser.
func WriteHTML(w io.Writer, r Report) error {
	p := html.Page{
		Title: "Migration of " + r.Cluster, Lead: r.lead(),
		Facts:     []html.Fact{{Name: "Result", Value: string(r.Result)}, {Name: "godwit", Value: render.Words(r.Versions)}, {Name: "Users", Value: render.Words(r.Users)}},
		Tiles:     r.tiles(),
		BarsTitle: "Before and after", BarsLead: "Before is the first plan, and after is the last document about each object.",
	}
	if o := r.Origin; o != nil {
		p.Facts = append(p.Facts, html.Fact{Name: "API server", Value: render.OrDash(o.Server)}, html.Fact{Name: "UID of kube-system", Value: render.OrDash(o.ClusterUID)})
	}
	if n := len(r.Documents); n > 0 {
		p.Facts = append(p.Facts, html.Fact{Name: "First document", Value: r.Documents[0].when()}, html.Fact{Name: "Last document", Value: r.Documents[n-1].when()})
	}
	for _, d := range r.Domains {
		if d.Before == d.After {
			continue
		}
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
	p.Sections = append(p.Sections, html.Section{ID: "documents", Title: "Documents", Grid: documentTable.HTML(r.Documents)})
	if len(r.Unread) > 0 {
		p.Sections = append(p.Sections, html.Section{ID: "unread", Title: "Files that were not read", Grid: unreadTable.HTML(r.Unread)})
	}
	return html.Write(w, p)
}

func (r Report) lead() string {
	return fmt.Sprintf("%s: %s, %d of %s clean.", r.Result, render.Count(int64(len(r.Documents)), "document", "documents"),
		r.clean(), render.Count(int64(len(r.Objects)), "object", "objects"))
}

func (r Report) tiles() []html.Tile {
	left := int64(len(r.Objects) - r.clean())
	tone := func(bad bool) render.Tone {
		if bad {
			return render.Bad
		}
		return render.Good
	}
	return []html.Tile{
		{Value: string(r.Result), Label: "result", Tone: tone(r.Result != Complete)},
		{Value: render.Number(int64(r.clean())), Label: "objects are clean", Tone: render.Good},
		{Value: render.Number(left), Label: "objects are left", Tone: tone(left > 0)},
		{Value: render.Number(int64(r.proven())), Label: "proven in etcd", Tone: render.Plain},
		{Value: render.Number(int64(len(r.Unread))), Label: "files not read", Tone: tone(len(r.Unread) > 0)},
	}
}

// section has the objects of a domain, and their state before where it differs from the one after.
func (r Report) section(d planreport.Domain) html.Section {
	objects := slices.DeleteFunc(slices.Clone(r.Objects), func(o Object) bool { return o.Domain != d })
	for i, o := range objects {
		if o.Before == o.After {
			objects[i].Before = ""
		}
	}
	return html.Section{ID: strings.ToLower(string(d)), Title: string(d), Grid: objectTable.HTML(objects)}
}
