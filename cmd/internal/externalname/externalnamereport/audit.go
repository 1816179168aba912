package externalnamereport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/audit"
)

// AuditState says what a finding asks of the user.
type AuditState string

const (
	// UserAction means that the user must act.
	UserAction AuditState = "UserAction"
	// Compare means that the finding is not certain, or does no harm now: the user should compare.
	Compare AuditState = "Compare"
)

// AuditFinding is a problem of one managed resource.
type AuditFinding struct {
	State AuditState `json:"state"`
	// Resource is the resource as kubectl accepts it, such as buckets.s3.example.org.
	Resource     string `json:"resource"`
	Kind         string `json:"kind"`
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	ExternalName string `json:"externalName"`
	render.Problem
	// With are the other managed resources of the finding, as RESOURCE NAMESPACE/NAME.
	With []string `json:"with"`
}

// ResourceName names the managed resource.
func (f AuditFinding) ResourceName() string { return f.Resource + "/" + f.Name }

// AuditUnread says why a resource could not be read. What its objects have in common with others is not known.
type AuditUnread struct {
	Resource string `json:"resource"`
	render.Problem
}

// AuditReport is what `externalname audit` prints.
type AuditReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	render.Provenance
	Items []AuditFinding `json:"items"`
	// Kinds and Objects count the kinds of managed resources and the managed resources that were read.
	Kinds   int64         `json:"kinds"`
	Objects int64         `json:"objects"`
	Unread  []AuditUnread `json:"unread"`
}

// WithProvenance implements [render.Evidence].
func (r AuditReport) WithProvenance(made render.Provenance) any {
	r.Provenance = made
	return r
}

// NewAuditReport returns the findings of an audit as the document of the output. explain says why a resource could not be read.
func NewAuditReport(facts audit.Facts, found []audit.Finding, w remedy.Writer, explain func(error) render.Problem) AuditReport {
	r := AuditReport{APIVersion: render.APIVersion, Kind: "ExternalNameAuditReport", Items: []AuditFinding{}, Objects: int64(len(facts.Managed)), Unread: []AuditUnread{}}
	for _, f := range found {
		state := UserAction
		if f.Severity != godwit.Blocks {
			state = Compare
		}
		r.Items = append(r.Items, AuditFinding{
			State: state, Resource: f.Kind.Resource.GroupResource().String(), Kind: f.Kind.Kind, Namespace: f.Namespace, Name: f.Name, ExternalName: f.ExternalName,
			Problem: render.NewProblem(f.Finding, w), With: render.Present(f.With),
		})
	}
	for _, u := range facts.Unread {
		r.Unread = append(r.Unread, AuditUnread{u.Resource.String(), explain(u.Err)})
	}
	return r
}

var auditStates = map[AuditState]render.Cell{
	UserAction: {Text: "✗ UserAction", Tone: render.Bad},
	Compare:    {Text: "! Compare", Tone: render.Attention},
}

var auditTable = render.Table[AuditFinding]{
	{Name: "State", Cell: func(f AuditFinding) render.Cell { return auditStates[f.State] }},
	{Name: "Resource", Cell: func(f AuditFinding) render.Cell { return render.TextCell(f.Resource) }},
	{Name: "Namespace", Cell: func(f AuditFinding) render.Cell { return render.TextCell(f.Namespace) }},
	{Name: "Name", Key: true, Cell: func(f AuditFinding) render.Cell { return render.TextCell(f.Name) }},
	{Name: "External name", Cell: func(f AuditFinding) render.Cell { return nameCell(f.ExternalName) }},
	{Name: "Reason", Cell: func(f AuditFinding) render.Cell { return render.TextCell(f.Reason) }},
}

// manyUnread is the largest number of unread resources that have a line each. More are only counted, unless the table is wide.
const manyUnread = 5

// WriteAudit writes a table, the findings with their remedies, the resources that could not be read, and a sum. grant is the command
// that grants missing permissions; it is empty if none is missing.
func WriteAudit(w io.Writer, s render.Style, r AuditReport, grant string) error {
	items := slices.Clone(r.Items)
	slices.SortStableFunc(items, func(a, b AuditFinding) int { return strings.Compare(string(b.State), string(a.State)) })
	var text strings.Builder
	text.WriteString(auditTable.Text(s, items))
	for _, f := range items {
		mark := render.MarkBad
		if f.State == Compare {
			mark = render.MarkAttention
		}
		text.WriteString(render.Below(f.Resource+" "+render.ObjectName(f.Namespace, f.Name), f.Lines(s, mark)))
	}
	if len(items) > 0 {
		text.WriteString("\n")
	}
	writeAuditUnread(&text, s, r.Unread, grant)
	fmt.Fprintf(&text, "%s\n", r.sum())
	_, err := io.WriteString(w, text.String())
	return err
}

func writeAuditUnread(text *strings.Builder, s render.Style, unread []AuditUnread, grant string) {
	for i, u := range unread {
		if i == manyUnread && !s.Wide {
			fmt.Fprintf(text, "… and %s\n", render.Count(int64(len(unread)-i), "more resource", "more resources"))
			break
		}
		text.WriteString(s.Wrap(render.Cell{Text: "? " + u.Resource + " not read, " + u.Reason + ":", Tone: render.Unsure}, 4, u.Message))
		if u.Reason != render.ReasonForbidden.Name {
			text.WriteString(s.RemedyLines(2, u.Remedy))
		}
	}
	if grant != "" {
		text.WriteString(s.RemedyLines(2, grant))
	}
}

func (r AuditReport) sum() string {
	counts := map[AuditState]int64{}
	for _, f := range r.Items {
		counts[f.State]++
	}
	parts := render.Parts([]render.Part{{N: counts[UserAction], What: "need user action"}, {N: counts[Compare], What: "to compare"}})
	if n := int64(len(r.Unread)); n > 0 {
		parts = append(parts, render.Count(n, "resource", "resources")+" not read")
	}
	if len(parts) == 0 {
		parts = []string{"nothing was found"}
	}
	return fmt.Sprintf("%s of %s: %s", render.Count(r.Objects, "managed resource", "managed resources"), render.Count(r.Kinds, "kind", "kinds"), strings.Join(parts, ", "))
}
