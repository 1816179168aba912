package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

// MarkerFinding is one thing to correct in Go source.
type MarkerFinding struct {
	File    string         `json:"file"`
	Line    int            `json:"line"`
	Type    string         `json:"type"`
	Reason  markers.Reason `json:"reason"`
	Message string         `json:"message"`
}

// MarkerFindingList makes the list that `lint markers` prints.
func MarkerFindingList(findings []markers.Finding) List[MarkerFinding] {
	items := make([]MarkerFinding, len(findings))
	for i, f := range findings {
		items[i] = MarkerFinding(f)
	}
	return List[MarkerFinding]{APIVersion, "MarkerFindingList", items}
}

// WriteFindings writes a line for each finding, as compilers do, which is what
// editors and CI systems find files and lines by.
func WriteFindings(w io.Writer, findings []markers.Finding) error {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintln(&text, f)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
