// Package evidencereport gathers the JSON output of other commands into a report of a migration for each
// cluster. It is pure: values in, text out.
//
// # Reading order
//
// contract.go has the report. file.go decodes a file, and cluster.go builds the report of a cluster. crd.go, rescue.go,
// resource.go, revision.go, externalname.go, hub.go and plan.go each add one kind of document, and gather.go reads all
// files. table.go has the columns. page.go writes a page in HTML, and text.go text. A file uses only files before it.
package evidencereport

import (
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/format"
)

// Result says whether the migration of a cluster has ended.
type Result string

const (
	// Complete means that the last document about each object says that nothing is left to do.
	Complete Result = "Complete"
	// Incomplete means that an object is not Clean, or that a file could not be read.
	Incomplete Result = "Incomplete"
)

// Kind is the kind of the document.
const Kind = "MigrationReport"

// Report is the evidence of one cluster.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	// Origin is the cluster of the first document that names its cluster; null if none does.
	Origin *render.Origin `json:"origin"`
	// Users are those for whom API servers took the commands.
	Users  []string `json:"users"`
	Result Result   `json:"result"`
	// Versions of godwit that wrote documents, as far as the documents say.
	Versions []string `json:"versions"`
	Domains  []Domain `json:"domains"`
	Objects  []Object `json:"objects"`
	// Documents are in the order of their names, which is the order in which they count.
	Documents []Document `json:"documents"`
	Unread    []Unread   `json:"unread"`
}

// Domain is what a migration has changed.
type Domain struct {
	Name planreport.Domain `json:"name"`
	// Before is what the first plan says, and After what the last document says.
	Before planreport.Counts `json:"before"`
	After  planreport.Counts `json:"after"`
}

// Object is what the documents say about one object.
type Object struct {
	Domain planreport.Domain `json:"domain"`
	Name   string            `json:"name"`
	// Before is empty without a plan before the first run.
	Before planreport.State `json:"before"`
	// Result is that of the last run, and Detail its numbers. Both are empty without a run.
	Result string `json:"result"`
	Detail string `json:"detail"`
	// Proof is what the last verification or check says, and empty without one.
	Proof    string                 `json:"proof"`
	After    planreport.State       `json:"after"`
	Blockers []render.ObjectProblem `json:"blockers"`
}

// Document is a file that was read.
type Document struct {
	File string `json:"file"`
	Kind string `json:"kind"`
	// Time is when the command began, if the document says so, or else the time of the file.
	Time time.Time `json:"time"`
	// TimeOf is Document or File.
	TimeOf          string  `json:"timeOf"`
	Items           int     `json:"items"`
	DurationSeconds float64 `json:"durationSeconds"`
	// SHA256 is the hash of the file.
	SHA256 string `json:"sha256"`
}

// Unread is a file that was not read.
type Unread struct {
	File string `json:"file"`
	render.Cause
}

// Reasons are those of evidence that can't be read.
var Reasons godwit.Catalog

// Reasons of a file that was not read.
var (
	ReasonFileUnreadable = Reasons.Declare(godwit.Reason{
		Name: "FileUnreadable", UserAction: true,
		Meaning: "A file in the directory of `godwit report` could not be read, or is not the JSON output of a command.",
		Fix:     godwit.Do("write the output again with `-o json`, or move the file out of the directory"),
	})
	ReasonKindUnknown = Reasons.Declare(godwit.Reason{
		Name: "KindUnknown", UserAction: true,
		Meaning: "A file in the directory of `godwit report` is JSON of another kind than a report contains.",
		Fix:     godwit.Do("move the file out of the directory. `godwit report --help` lists the commands whose output it reads"),
	})
	ReasonOtherCluster = Reasons.Declare(godwit.Reason{
		Name: "OtherCluster", UserAction: true,
		Meaning: "A file in the folder of a cluster is about another cluster: the UID of its namespace kube-system differs.",
		Fix:     godwit.Do("move the file to the folder of its cluster"),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "wrote a file in the directory of `godwit report`",
		"The report is made without the file.", godwit.Do("make the report with that release, or a newer one"))
)

// ResourceName returns the name of the report.
func (r Report) ResourceName() string { return "report/" + r.Cluster }

// List returns the list of the reports.
func List(reports []Report) render.List[Report] {
	return render.NewList("MigrationReportList", reports)
}
