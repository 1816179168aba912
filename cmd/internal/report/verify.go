package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteVerified writes a table of what etcd holds, and why something is not
// proven.
func WriteVerified(w io.Writer, s Style, reports []CRDVerifyReport) error {
	t := table{header: []string{"NAME", "VERDICT", "STORAGE", "OBJECTS", "BY VERSION", "UNREADABLE"}}
	for _, r := range reports {
		verdict := cell{"✗ NotProven", bad}
		if r.Proven() {
			verdict = cell{"✓ Proven", good}
		}
		t.add(cell{text: r.Name}, verdict, cell{text: orDash(r.StorageVersion)}, number(r.Objects), cell{text: byVersion(r)}, number(r.Unreadable))
	}
	if err := t.write(w, s); err != nil {
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
				s.paint(bad, "✗ "+Count(old, "object is", "objects are")+" not at "+orDash(r.StorageVersion)), r.Remedy)
		}
		if r.Unreadable > 0 {
			fmt.Fprintf(&text, "  %s, first %s\n",
				s.paint(bad, "✗ "+Count(r.Unreadable, "object", "objects")+" can't be read"), r.UnreadableWhy)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func byVersion(r CRDVerifyReport) string {
	parts := make([]string, 0, len(r.ByVersion))
	for _, version := range slices.Sorted(maps.Keys(r.ByVersion)) {
		parts = append(parts, version+"="+Number(r.ByVersion[version]))
	}
	return words(parts)
}
