package externalnamereport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/ready"
)

// Readiness says whether a managed resource that only observes can be managed without a change.
type Readiness struct {
	Kind string `json:"kind"`
	ready.Decision

	resource string
}

// NewReadiness returns an item. Its command has the flags for the user's cluster.
func NewReadiness(kind fleet.Kind, d ready.Decision) Readiness {
	return Readiness{Kind: kind.Kind, Decision: d, resource: kind.Resource.GroupResource().String()}
}

// ResourceName names the managed resource.
func (r Readiness) ResourceName() string { return r.resource + "/" + r.Name }

// ReadyList returns the list of `externalname ready`.
func ReadyList(items []Readiness) render.List[Readiness] {
	return render.NewList("ExternalNameReadyList", items)
}

var readyTable = render.Table[Readiness]{
	{Name: "Ready", Cell: readyCell},
	{Name: "Namespace", Cell: func(r Readiness) render.Cell { return render.TextCell(r.Namespace) }},
	{Name: "Name", Key: true, Cell: func(r Readiness) render.Cell { return render.TextCell(r.Name) }},
	{Name: "Reason", Cell: func(r Readiness) render.Cell { return render.TextCell(r.Reason.String()) }},
	{Name: "Message", Cell: func(r Readiness) render.Cell { return render.TextCell(r.Message) }},
}

func readyCell(r Readiness) render.Cell {
	if r.Ready {
		return render.Cell{Text: "✓ Yes", Tone: render.Good}
	}
	return render.Cell{Text: "✗ No", Tone: render.Bad}
}

// WriteReady writes a table, the commands for those that are ready, and a sum.
func WriteReady(w io.Writer, s render.Style, items []Readiness) error {
	var text strings.Builder
	text.WriteString(readyTable.Text(s, items))
	n := int64(0)
	for _, one := range items {
		if one.Ready {
			n++
			fmt.Fprintf(&text, "→ %s\n", one.Command)
		}
	}
	fmt.Fprintf(&text, "%s: %s ready\n", render.Count(int64(len(items)), "managed resource only observes", "managed resources only observe"), render.Number(n))
	_, err := io.WriteString(w, text.String())
	return err
}
