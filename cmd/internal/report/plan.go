package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator"
)

var planStates = map[string]cell{
	"Clean":   {"✓ Clean", good},
	"Ready":   {"● Ready", attention},
	"Blocked": {"✗ Blocked", bad},
	"Unknown": {"? Unknown", bad},
}

// WritePlans writes a table of plans, what blocks them or should be known and what
// cures it, and a sum. What there is to do comes first.
func WritePlans(w io.Writer, s Style, plans []CRDPlan) error {
	plans = slices.Clone(plans)
	slices.SortStableFunc(plans, func(a, b CRDPlan) int { return planOrder(a) - planOrder(b) })
	t := table{header: []string{"NAME", "STATE", "STORAGE", "STORED", "OBJECTS"}}
	if s.Wide {
		t.header = append(t.header, "SERVED", "MANAGED FIELDS")
	}
	for _, p := range plans {
		row := []cell{
			{text: p.Name}, planStates[p.State], {text: orDash(p.StorageVersion)}, {text: words(p.StoredVersions)}, {text: objects(p.Objects)},
		}
		if s.Wide {
			row = append(row, cell{text: words(p.ServedVersions)}, cell{text: orDash(p.ManagedFields)})
		}
		t.add(row...)
	}
	if err := t.write(w, s); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range plans {
		unknown := p.unknown()
		if len(p.Blockers)+len(p.Warnings) > 0 || unknown != nil {
			fmt.Fprintf(&text, "\n%s\n", p.Name)
		}
		if unknown != nil {
			fmt.Fprintf(&text, "  %s %s\n    → %s\n", s.paint(bad, "? "+unknown.Reason+":"), unknown.Message, unknown.Remedy)
		}
		for _, b := range p.Blockers {
			fmt.Fprintf(&text, "  %s %s\n    → %s\n", s.paint(bad, "✗ "+b.Reason+":"), b.Message, b.Remedy)
		}
		for _, b := range p.Warnings {
			fmt.Fprintf(&text, "  %s %s\n    → %s\n", s.paint(attention, "! "+b.Reason+":"), b.Message, b.Remedy)
		}
	}
	for _, p := range plans {
		if p.ManagedFields == "Stale" {
			fmt.Fprintf(&text, "\n%s: managedFields of objects name versions that are not served; a run cleans them\n", p.Name)
		}
	}
	fmt.Fprintf(&text, "\n%s\n", planSum(plans))
	_, err := io.WriteString(w, text.String())
	return err
}

func planOrder(p CRDPlan) int {
	return slices.Index([]string{"Blocked", "Unknown", "Ready", "Clean"}, p.State)
}

// unknown is why nothing is known of the objects, for the table: what blocks says
// so itself, and permissions that are missing are told for all CRDs at once.
func (p CRDPlan) unknown() *Unlisted {
	if p.State != string(crdmigrator.StateUnknown) || p.Unlisted == nil || p.Unlisted.Reason == crdmigrator.ReasonForbidden {
		return nil
	}
	return p.Unlisted
}

// planSum never adds up what it could not count.
func planSum(plans []CRDPlan) string {
	states := map[string]int64{}
	var objects, uncounted int64
	for _, p := range plans {
		states[p.State]++
		switch {
		case p.State != "Ready" || onlyManagedFields(p):
		case p.Objects == nil:
			uncounted++
		default:
			objects += *p.Objects
		}
	}
	sum := fmt.Sprintf("%s: %d clean, %d ready, %d blocked",
		Count(int64(len(plans)), "customresourcedefinition", "customresourcedefinitions"), states["Clean"], states["Ready"], states["Blocked"])
	if states["Unknown"] > 0 {
		sum += fmt.Sprintf(", %d unknown", states["Unknown"])
	}
	if states["Ready"] == 0 {
		return sum
	}
	if uncounted > 0 {
		return sum + fmt.Sprintf("; at least %s to migrate", Count(objects, "object", "objects"))
	}
	return sum + fmt.Sprintf("; %s to migrate", Count(objects, "object", "objects"))
}

// onlyManagedFields: no object has to be migrated, unless the list of stored
// versions is in doubt.
func onlyManagedFields(p CRDPlan) bool {
	return slices.Equal(p.StoredVersions, []string{p.StorageVersion}) &&
		!slices.ContainsFunc(p.Warnings, func(w godwit.Warning) bool { return w.Reason == crdmigrator.ReasonStoredVersionsDoubtful })
}

func objects(n *int64) string {
	if n == nil {
		return "?"
	}
	return Number(*n)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
