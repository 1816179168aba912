package evidencereport

import (
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var results = map[Result]render.Cell{
	Complete: {Text: "✓ Complete", Tone: render.Good}, Incomplete: {Text: "✗ Incomplete", Tone: render.Bad},
}

// reportTable has a row for each cluster.
var reportTable = render.Table[Report]{
	{Name: "Cluster", Cell: func(r Report) render.Cell { return render.TextCell(r.Cluster) }},
	{Name: "Result", Cell: func(r Report) render.Cell { return results[r.Result] }},
	{Name: "Documents", Cell: func(r Report) render.Cell { return render.NumberCell(len(r.Documents)) }},
	{Name: "Objects", Cell: func(r Report) render.Cell { return render.NumberCell(len(r.Objects)) }},
	{Name: "Clean", Cell: func(r Report) render.Cell { return render.NumberCell(r.clean()) }},
	{Name: "Proven", Cell: func(r Report) render.Cell { return render.NumberCell(r.proven()) }},
	{Name: "Not read", Cell: func(r Report) render.Cell { return render.NumberCell(len(r.Unread)) }},
}

func (r Report) clean() (n int) {
	for _, o := range r.Objects {
		if o.After == planreport.Clean {
			n++
		}
	}
	return n
}

func (r Report) proven() (n int) {
	for _, o := range r.Objects {
		if strings.HasPrefix(o.Proof, "Proven") {
			n++
		}
	}
	return n
}

// objectTable has the objects of one domain of a cluster.
var objectTable = render.Table[Object]{
	{Name: "Name", Cell: func(o Object) render.Cell { return render.TextCell(o.Name) }},
	{Name: "Before", Cell: func(o Object) render.Cell { return planreport.StateCell(o.Before) }},
	{Name: "Run", Cell: func(o Object) render.Cell { return render.TextCell(o.Result) }},
	{Name: "Numbers", Cell: func(o Object) render.Cell { return render.TextCell(o.Detail) }},
	{Name: "Proof", Cell: func(o Object) render.Cell { return render.TextCell(o.Proof) }},
	{Name: "After", Cell: func(o Object) render.Cell { return planreport.StateCell(o.After) }},
	{Name: "Blocked by", Cell: func(o Object) render.Cell { return planreport.BlockersCell(o.After, o.Blockers) }},
}

var documentTable = render.Table[Document]{
	{Name: "File", Cell: func(d Document) render.Cell { return render.TextCell(d.File) }},
	{Name: "Kind", Cell: func(d Document) render.Cell { return render.TextCell(d.Kind) }},
	{Name: "Time", Cell: func(d Document) render.Cell { return render.TextCell(d.when()) }},
	{Name: "Items", Cell: func(d Document) render.Cell { return render.NumberCell(d.Items) }},
	{Name: "Duration", Cell: Document.duration},
	{Name: "SHA-256", Cell: func(d Document) render.Cell { return render.TextCell(d.SHA256) }},
}

func (d Document) when() string {
	text := d.Time.Format(time.RFC3339)
	if d.TimeOf == "File" {
		text += " (time of the file)"
	}
	return text
}

// duration is empty for a document that does not say how long its command took.
func (d Document) duration() render.Cell {
	if d.DurationSeconds == 0 {
		return render.Cell{}
	}
	return render.DurationCell(d.DurationSeconds)
}

var unreadTable = render.Table[Unread]{
	{Name: "File", Cell: func(u Unread) render.Cell { return render.TextCell(u.File) }},
	{Name: "Reason", Cell: func(u Unread) render.Cell { return render.Cell{Text: u.Reason, Tone: render.Bad} }},
	{Name: "Message", Cell: func(u Unread) render.Cell { return render.TextCell(u.Message) }},
}
