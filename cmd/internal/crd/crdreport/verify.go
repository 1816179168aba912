package crdreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

var verifyTable = render.Table[Verification]{
	{Name: "Name", Cell: func(r Verification) render.Cell { return render.TextCell(r.Name) }},
	{Name: "Result", Cell: provenCell},
	{Name: "Storage", Cell: func(r Verification) render.Cell { return render.TextCell(r.StorageVersion) }},
	{Name: "Objects", Cell: func(r Verification) render.Cell { return render.NumberCell(r.Objects) }},
	{Name: "By version", Cell: func(r Verification) render.Cell { return render.TallyCell(r.ByVersion) }},
	{Name: "Unreadable", Cell: func(r Verification) render.Cell { return render.NumberCell(r.Unreadable) }},
}

func provenCell(r Verification) render.Cell {
	if r.Proven() {
		return render.Cell{Text: "✓ Proven", Tone: render.Good}
	}
	return render.Cell{Text: "✗ NotProven", Tone: render.Bad}
}

// WriteVerifications writes a table of the versions that objects are stored at in etcd, and
// why a CRD is not proven.
func WriteVerifications(w io.Writer, s render.Style, reports []Verification) error {
	var text strings.Builder
	text.WriteString(verifyTable.Text(s, reports))
	for _, r := range reports {
		if r.Proven() {
			continue
		}
		fmt.Fprintf(&text, "\n%s\n", r.Name)
		if old := r.Objects - r.Unreadable - r.ByVersion[r.StorageVersion]; old > 0 {
			fmt.Fprintf(&text, "  %s\n%s",
				s.Paint(render.Bad, "✗ "+render.Count(old, "object is", "objects are")+" not at "+render.OrDash(r.StorageVersion)), s.RemedyLines(4, r.Remedy))
		}
		if r.Unreadable > 0 {
			fmt.Fprintf(&text, "  %s, first %s\n",
				s.Paint(render.Bad, "✗ "+render.Count(r.Unreadable, "object", "objects")+" can't be read"), r.UnreadableWhy)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
