package crdreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

// WriteVerifications writes a table of the versions that objects are stored at in etcd, and
// why a CRD is not proven.
func WriteVerifications(w io.Writer, s report.Style, reports []Verification) error {
	t := report.Table{Header: []string{"NAME", "RESULT", "STORAGE", "OBJECTS", "BY VERSION", "UNREADABLE"}}
	for _, r := range reports {
		result := report.Cell{Text: "✗ NotProven", Tone: report.Bad}
		if r.Proven() {
			result = report.Cell{Text: "✓ Proven", Tone: report.Good}
		}
		t.Add(report.Cell{Text: r.Name}, result, report.Cell{Text: report.OrDash(r.StorageVersion)}, report.NumberCell(r.Objects), report.Cell{Text: report.Tally(r.ByVersion)}, report.NumberCell(r.Unreadable))
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
				s.Paint(report.Bad, "✗ "+report.Count(old, "object is", "objects are")+" not at "+report.OrDash(r.StorageVersion)), r.Remedy)
		}
		if r.Unreadable > 0 {
			fmt.Fprintf(&text, "  %s, first %s\n",
				s.Paint(report.Bad, "✗ "+report.Count(r.Unreadable, "object", "objects")+" can't be read"), r.UnreadableWhy)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
