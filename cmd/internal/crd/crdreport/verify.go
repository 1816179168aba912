package crdreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// WriteVerifications writes a table of the versions that objects are stored at in etcd, and
// why a CRD is not proven.
func WriteVerifications(w io.Writer, s render.Style, reports []Verification) error {
	t := render.Table{Header: []string{"NAME", "RESULT", "STORAGE", "OBJECTS", "BY VERSION", "UNREADABLE"}}
	for _, r := range reports {
		result := render.Cell{Text: "✗ NotProven", Tone: render.Bad}
		if r.Proven() {
			result = render.Cell{Text: "✓ Proven", Tone: render.Good}
		}
		t.Add(render.Cell{Text: r.Name}, result, render.Cell{Text: render.OrDash(r.StorageVersion)}, render.NumberCell(r.Objects), render.Cell{Text: render.Tally(r.ByVersion)}, render.NumberCell(r.Unreadable))
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range reports {
		if r.Proven() {
			continue
		}
		fmt.Fprintf(&text, "\n%s\n", r.Name)
		if old := r.Objects - r.Unreadable - r.ByVersion[r.StorageVersion]; old > 0 {
			fmt.Fprintf(&text, "  %s\n    → %s\n",
				s.Paint(render.Bad, "✗ "+render.Count(old, "object is", "objects are")+" not at "+render.OrDash(r.StorageVersion)), r.Remedy)
		}
		if r.Unreadable > 0 {
			fmt.Fprintf(&text, "  %s, first %s\n",
				s.Paint(render.Bad, "✗ "+render.Count(r.Unreadable, "object", "objects")+" can't be read"), r.UnreadableWhy)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
