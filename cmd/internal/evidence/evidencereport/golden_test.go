package evidencereport_test

import (
	"io"
	"testing"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/evidence/evidencereport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/rendertest"
)

// TestFormats: each format has all that a report says.
func TestFormats(t *testing.T) {
	blocked := crdreport.Plan{Name: "gadgets.example.com", State: "Blocked", Blockers: []render.Problem{{Reason: "NoStorageVersion", Message: "none is set", Remedy: "set one"}}}
	plans := crdreport.PlanList([]crdreport.Plan{{Name: "widgets.example.com", State: "Ready", StorageVersion: "v2"}, blocked})
	files := []evidencereport.File{
		file(t, "east/1.json", plans), crdRun(t, "east/2.json", crdreport.Succeeded), verification(t, "east/3.json", 0),
		{Name: "east/notes.txt", Cluster: "east", Folder: true, Text: []byte("it went well")},
		crdPlan(t, "west/1.json", "Clean"),
	}
	reports := evidencereport.Gather(files)
	for name, write := range map[string]func(io.Writer) error{
		"report.txt":  func(w io.Writer) error { return evidencereport.WriteText(w, render.Style{}, reports) },
		"report.json": func(w io.Writer) error { return render.Encode(w, evidencereport.List(reports)) },
		"report.html": rendertest.Body(func(w io.Writer) error { return evidencereport.WriteHTML(w, reports[0]) }),
	} {
		rendertest.Golden(t, name, write)
	}
}
