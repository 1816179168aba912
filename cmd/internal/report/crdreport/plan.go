package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
)

var planStates = map[string]report.Cell{
	"Clean":   {Text: "✓ Clean", Tone: report.Good},
	"Ready":   {Text: "● Ready", Tone: report.Attention},
	"Blocked": {Text: "✗ Blocked", Tone: report.Bad},
	"Unknown": {Text: "? Unknown", Tone: report.Bad},
}

// WritePlans writes a table of plans, what blocks them or should be known and what
// fixes it, and a sum. What there is to do comes first. Plans without anything to say
// are only counted, unless all are asked for or the table is wide.
func WritePlans(w io.Writer, s report.Style, plans []Plan, all bool) error {
	sum := planSum(plans)
	plans, folded := foldPlans(plans, all || s.Wide)
	slices.SortStableFunc(plans, func(a, b Plan) int { return planOrder(a) - planOrder(b) })
	t := report.Table{Header: []string{"NAME", "STATE", "STORAGE", "STORED", "OBJECTS"}}
	if s.Wide {
		t.Header = append(t.Header, "SERVED", "MANAGED FIELDS")
	}
	for _, p := range plans {
		row := []report.Cell{
			{Text: p.Name}, planStates[p.State], {Text: report.OrDash(p.StorageVersion)}, {Text: report.Words(p.StoredVersions)}, {Text: objects(p.Objects)},
		}
		if s.Wide {
			row = append(row, report.Cell{Text: report.Words(p.ServedVersions)}, report.Cell{Text: report.OrDash(p.ManagedFields)})
		}
		t.Add(row...)
	}
	if err := t.Write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range plans {
		p.explain(&text, s)
	}
	for _, p := range plans {
		if p.ManagedFields == "Stale" {
			fmt.Fprintf(&text, "\n%s: managedFields of objects name versions that are not served; a run cleans them\n", p.Name)
		}
	}
	if len(plans) > 0 {
		text.WriteByte('\n')
	}
	if folded.Lacking > 0 {
		fmt.Fprintf(&text, "%s not shown, because permissions are missing; -o wide shows all\n", report.CRDs(folded.Lacking))
	}
	fmt.Fprintf(&text, "%s\n", sum)
	_, err := io.WriteString(w, text.String())
	return err
}

// explain says what blocks a plan or should be known, under its name.
func (p Plan) explain(text *strings.Builder, s report.Style) {
	var lines strings.Builder
	if unknown := p.unknown(); unknown != nil {
		fmt.Fprintf(&lines, "  %s %s\n    → %s\n", s.Paint(report.Bad, "? "+unknown.Reason+":"), unknown.Message, unknown.Remedy)
	}
	for _, b := range p.Blockers {
		fmt.Fprintf(&lines, "  %s %s\n    → %s\n", s.Paint(report.Bad, "✗ "+b.Reason+":"), b.Message, b.Remedy)
	}
	for _, b := range p.Warnings {
		if b.Reason == report.ReasonForbidden {
			continue // told for all CRDs at once
		}
		fmt.Fprintf(&lines, "  %s %s\n    → %s\n", s.Paint(report.Attention, "! "+b.Reason+":"), b.Message, b.Remedy)
	}
	if lines.Len() > 0 {
		fmt.Fprintf(text, "\n%s\n%s", p.Name, lines.String())
	}
}

// Folded counts CRDs without a row in a table.
type Folded struct {
	// Clean means that there is nothing to do.
	Clean int64
	// Lacking means that permissions are missing, and nothing else is known to be in
	// the way.
	Lacking int64
}

// ManyLacking is how many CRDs that lack permissions have rows of their own; more
// are one line.
const ManyLacking = 5

func foldPlans(plans []Plan, all bool) (shown []Plan, folded Folded) {
	shown = slices.Clone(plans)
	slices.SortStableFunc(shown, func(a, b Plan) int { return planOrder(a) - planOrder(b) })
	if all {
		return shown, folded
	}
	var lacking int
	for _, p := range plans {
		if p.onlyLacks() {
			lacking++
		}
	}
	shown = slices.DeleteFunc(shown, func(p Plan) bool {
		switch {
		case p.State == string(crdmigrator.Clean) && len(p.Warnings) == 0:
			folded.Clean++
		case p.onlyLacks() && lacking > ManyLacking:
			folded.Lacking++
		default:
			return false
		}
		return true
	})
	return shown, folded
}

// onlyLacks means that missing permissions are all there is to say.
func (p Plan) onlyLacks() bool {
	forbidden := func(b Problem) bool { return b.Reason == report.ReasonForbidden }
	switch crdmigrator.State(p.State) {
	case crdmigrator.StateUnknown:
		return p.Unlisted != nil && p.Unlisted.Reason == report.ReasonForbidden && len(p.Warnings) == 0
	case crdmigrator.Blocked:
		return p.Unlisted != nil && p.Unlisted.Reason == report.ReasonForbidden && !slices.ContainsFunc(p.Blockers, func(b Problem) bool { return !forbidden(b) })
	}
	return false
}

func planOrder(p Plan) int {
	return slices.Index([]string{"Blocked", "Unknown", "Ready", "Clean"}, p.State)
}

// unknown is why nothing is known of the objects, for the table: what blocks says
// so itself, and permissions that are missing are told for all CRDs at once.
func (p Plan) unknown() *Unlisted {
	if p.State != string(crdmigrator.StateUnknown) || p.Unlisted == nil || p.Unlisted.Reason == crdmigrator.ReasonForbidden {
		return nil
	}
	return p.Unlisted
}

// planSum never adds up what was not counted, nor says that there is nothing to
// migrate where something was not.
func planSum(plans []Plan) string {
	states := map[string]int64{}
	var objects, uncounted, blocked int64 // of which blocked were not counted either
	for _, p := range plans {
		states[p.State]++
		switch {
		case p.State == string(crdmigrator.Clean):
		case p.Objects == nil && p.State == string(crdmigrator.Blocked):
			blocked++
		case p.Objects == nil:
			uncounted++
		case p.State == string(crdmigrator.Ready) && !onlyManagedFields(p):
			objects += *p.Objects
		}
	}
	sum := fmt.Sprintf("%s: %d clean, %d ready, %d blocked", report.CRDs(int64(len(plans))), states["Clean"], states["Ready"], states["Blocked"])
	if states["Unknown"] > 0 {
		sum += fmt.Sprintf(", %d unknown", states["Unknown"])
	}
	switch {
	case states["Ready"] == 0:
		return sum
	case uncounted+blocked > 0 && objects == 0:
		return sum + "; how many objects to migrate is unknown"
	case uncounted > 0:
		return sum + fmt.Sprintf("; at least %s to migrate", report.Count(objects, "object", "objects"))
	}
	return sum + fmt.Sprintf("; %s to migrate", report.Count(objects, "object", "objects"))
}

// onlyManagedFields: no object has to be migrated, unless the list of stored
// versions is in doubt.
func onlyManagedFields(p Plan) bool {
	return slices.Equal(p.StoredVersions, []string{p.StorageVersion}) &&
		!slices.ContainsFunc(p.Warnings, func(w Problem) bool { return w.Reason == crdmigrator.ReasonStoredVersionsDoubtful })
}

func objects(n *int64) string {
	if n == nil {
		return "?"
	}
	return report.Number(*n)
}
