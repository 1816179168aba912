package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/doctor"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
)

// Diagnosis says what names versions of one CRD that the API server does not serve.
type Diagnosis struct {
	Name           string   `json:"name"`
	State          string   `json:"state"` // Clean, Stale or Unknown
	ServedVersions []string `json:"servedVersions"`
	// Findings come with what is broken first.
	Findings []Leftover `json:"findings"`
}

// Leftover is a [doctor.Finding] with its fix in words. It does not embed [render.Problem], because Broken and Objects stand
// between reason and message in the JSON output.
type Leftover struct {
	Reason string `json:"reason"`
	// Broken means that something does not work.
	Broken bool `json:"broken"`
	// Objects counts the objects that the finding is about.
	Objects int64  `json:"objects"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// Problem returns the reason, the message and the remedy of the leftover.
func (l Leftover) Problem() render.Problem {
	return render.Problem{Reason: l.Reason, Message: l.Message, Remedy: l.Remedy}
}

// Unread says why a resource could not be read. What its objects name is unknown.
type Unread struct {
	Resource string `json:"resource"`
	render.Problem
	// Alone means that the fault is of these objects alone: their conversion webhook or the server of their API group does not
	// answer. It concerns no other CRD, except that ownerReferences of these objects are not known.
	Alone bool `json:"alone"`
}

// DoctorReport is what `crd doctor` prints.
type DoctorReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	render.Provenance
	Items []Diagnosis `json:"items"`
	// Objects counts the objects whose metadata was read.
	Objects int64    `json:"objects"`
	Unread  []Unread `json:"unread"`
}

// WithProvenance implements [render.Evidence].
func (r DoctorReport) WithProvenance(made render.Provenance) any {
	r.Provenance = made
	return r
}

// ResourceName implements [render.Item].
func (d Diagnosis) ResourceName() string { return resourceName(d.Name) }

// NewDoctorReport returns the findings of a doctor as the document of the output.
func NewDoctorReport(f doctor.Facts, w remedy.Writer) DoctorReport {
	diagnoses := doctor.For(f)
	items := make([]Diagnosis, len(diagnoses))
	for i, d := range diagnoses {
		items[i] = Diagnosis{Name: d.CRD, State: string(d.State), ServedVersions: render.Present(d.Versions), Findings: []Leftover{}}
		for _, one := range d.Findings {
			p := render.NewProblem(one.Finding, w)
			items[i].Findings = append(items[i].Findings, Leftover{p.Reason, one.Broken(), one.Objects, p.Message, p.Remedy})
		}
	}
	return DoctorReport{APIVersion: render.APIVersion, Kind: "CRDDoctorReportList", Items: items, Objects: f.Objects, Unread: unreadOf(f.Unread, w)}
}

// NoDoctorReport returns the empty document that a command prints if it failed.
func NoDoctorReport() DoctorReport { return NewDoctorReport(doctor.Facts{}, remedy.Writer{}) }

func unreadOf(list []ownerreference.Unread, w remedy.Writer) []Unread {
	all := make([]Unread, len(list))
	for i, u := range list {
		all[i] = Unread{u.Resource, render.NewProblem(u.Finding, w), u.Alone}
	}
	return all
}

var diagnosisStates = map[string]render.Cell{
	string(doctor.Clean):   {Text: "✓ Clean", Tone: render.Good},
	string(doctor.Stale):   {Text: "✗ Stale", Tone: render.Bad},
	string(doctor.Unknown): {Text: "? Unknown", Tone: render.Attention},
}

var doctorTable = render.Table[Diagnosis]{
	{Name: "Name", Cell: func(d Diagnosis) render.Cell { return render.TextCell(d.Name) }},
	{Name: "State", Cell: func(d Diagnosis) render.Cell { return diagnosisStates[d.State] }},
	{Name: "Served", Cell: func(d Diagnosis) render.Cell { return render.WordsCell(d.ServedVersions) }},
	{Name: "Findings", Cell: func(d Diagnosis) render.Cell { return render.NumberCell(len(d.Findings)) }},
}

// manyUnread is the largest number of unread resources that have a line each. More are only counted, unless the table is wide.
const manyUnread = 5

// WriteDoctorReport writes a table of the CRDs with findings, or of all CRDs, then the findings with their remedies, the
// resources that could not be read, and a sum. grant is the command that grants missing permissions; it is empty if none is missing.
func WriteDoctorReport(w io.Writer, s render.Style, r DoctorReport, all bool, grant string) error {
	shown := slices.DeleteFunc(slices.Clone(r.Items), func(d Diagnosis) bool { return len(d.Findings) == 0 && !all && !s.Wide })
	var text strings.Builder
	text.WriteString(doctorTable.Text(s, shown))
	for _, d := range shown {
		var lines strings.Builder
		for _, f := range d.Findings {
			mark := render.MarkAttention
			if f.Broken {
				mark = render.MarkBad
			}
			lines.WriteString(f.Problem().Lines(s, mark))
		}
		text.WriteString(render.Below(d.Name, lines.String()))
	}
	if len(shown) > 0 {
		text.WriteString("\n")
	}
	writeUnread(&text, s, r.Unread, grant)
	counts := map[string]int{}
	for _, d := range r.Items {
		counts[d.State]++
	}
	fmt.Fprintf(&text, "%s: %d clean, %d stale, %d unknown; the metadata of %s was read\n",
		render.Count(int64(len(r.Items)), "customresourcedefinition", "customresourcedefinitions"),
		counts[string(doctor.Clean)], counts[string(doctor.Stale)], counts[string(doctor.Unknown)], render.Count(r.Objects, "object", "objects"))
	_, err := io.WriteString(w, text.String())
	return err
}

func writeUnread(text *strings.Builder, s render.Style, unread []Unread, grant string) {
	for i, u := range unread {
		if i == manyUnread && !s.Wide {
			fmt.Fprintf(text, "  … and %s\n", render.Count(int64(len(unread)-i), "more resource", "more resources"))
			break
		}
		text.WriteString(s.Wrap(render.Cell{Text: "? " + u.Resource + " not read, " + u.Reason + ":", Tone: render.Attention}, 4, u.Message))
		if u.Reason != render.ReasonForbidden.Name {
			text.WriteString(s.RemedyLines(4, u.Remedy))
		}
	}
	text.WriteString(s.RemedyLines(4, grant))
}
