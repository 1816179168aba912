package lint

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

// markerFinding is one finding in Go source.
type markerFinding struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Type string `json:"type"`
	render.Cause
}

// findingList returns the list that `lint markers` prints.
func findingList(findings []markers.Finding) render.List[markerFinding] {
	items := make([]markerFinding, len(findings))
	for i, f := range findings {
		items[i] = markerFinding{f.File, f.Line, f.Type, render.Cause{Reason: f.Reason.String(), Message: f.Message}}
	}
	return render.NewList("MarkerFindingList", items)
}

// writeFindings writes a line for each finding in the format of compilers, which editors and CI systems parse.
func writeFindings[F fmt.Stringer](w io.Writer, findings []F) error {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintln(&text, f)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
