package planreport

import (
	"slices"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var states = map[State]render.Cell{
	Clean:       {Text: "✓ Clean", Tone: render.Good},
	Ready:       {Text: "● Ready", Tone: render.Attention},
	InProgress:  {Text: "◐ InProgress", Tone: render.Attention},
	Blocked:     {Text: "✗ Blocked", Tone: render.Bad},
	Unknown:     {Text: "? Unknown", Tone: render.Unsure},
	NotChecked:  {Text: "? NotChecked", Tone: render.Unsure},
	Unreachable: {Text: "✗ Unreachable", Tone: render.Bad},
}

// StateCell is a state with its colour and its mark. It is empty for no state.
func StateCell(s State) render.Cell { return states[s] }

// BlockersCell has the reasons of blockers, in the colour of a state that is not known.
func BlockersCell(s State, blockers []render.ObjectProblem) render.Cell {
	c := render.WordsCell(reasonsOf(blockers))
	c.Problems = blockers
	if tone := states[s].Tone; tone == render.Unsure {
		c.Tone = tone
	}
	return c
}

// rowTable has a row for each cluster and domain.
var rowTable = render.Table[Row]{
	{Name: "Cluster", Cell: func(r Row) render.Cell { return render.TextCell(r.Cluster) }},
	{Name: "Domain", Cell: func(r Row) render.Cell { return render.TextCell(r.Domain) }},
	{Name: "State", Cell: func(r Row) render.Cell { return StateCell(r.State) }},
	{Name: "Clean", Cell: func(r Row) render.Cell { return r.count(r.Counts.Clean) }},
	{Name: "Total", Cell: func(r Row) render.Cell { return r.count(r.Counts.Total()) }},
	{Name: "Blocked by", Cell: func(r Row) render.Cell { return BlockersCell(r.State, r.Blockers) }},
	{Name: "Next", Except: render.Text, Cell: func(r Row) render.Cell { return render.CodeCell(r.Next) }},
}

// count returns a number of objects, or empty if they were not read.
func (r Row) count(n int64) render.Cell {
	if r.Counts.Total() == 0 && slices.Contains([]State{Unknown, NotChecked, Unreachable}, r.State) {
		return render.Cell{}
	}
	return render.NumberCell(n)
}

// placedObject is an object with its cluster and its domain.
type placedObject struct {
	Cluster string `json:"cluster"`
	Domain  Domain `json:"domain"`
	Object
}

// placed are the objects of rows.
func placed(rows []Row) []placedObject {
	var all []placedObject
	for _, r := range rows {
		for _, o := range r.Objects {
			all = append(all, placedObject{r.Cluster, r.Domain, o})
		}
	}
	return all
}

// objectTable has a row for each object. It omits columns that a page has as sections, and those that text has below
// its tables.
var objectTable = render.Table[placedObject]{
	{Name: "Cluster", Cell: func(o placedObject) render.Cell { return render.TextCell(o.Cluster) }},
	{Name: "Domain", Except: render.HTML, Cell: func(o placedObject) render.Cell { return render.TextCell(o.Domain) }},
	{Name: "Name", Key: true, Cell: func(o placedObject) render.Cell { return render.TextCell(o.Name) }},
	{Name: "State", Cell: func(o placedObject) render.Cell { return StateCell(o.State) }},
	{Name: "Detail", Cell: func(o placedObject) render.Cell { return render.TextCell(o.Detail) }},
	{Name: "Blocked by", Except: render.Text, Cell: func(o placedObject) render.Cell { return BlockersCell(o.State, o.Blockers) }},
	{Name: "Next", Cell: func(o placedObject) render.Cell { return render.CodeCell(o.Next) }},
}
