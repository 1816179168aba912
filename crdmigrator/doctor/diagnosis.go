package doctor

import "slices"

// State is the result of a diagnosis.
type State string

const (
	// Clean means that there is no reference to a version which is not served.
	Clean State = "Clean"
	// Stale means that there is such a reference.
	Stale State = "Stale"
	// Unknown means that no such reference was found, and that some resources could not be read which concern the CRD.
	Unknown State = "Unknown"
)

// Diagnosis is what was found about one CRD.
type Diagnosis struct {
	CRD   string
	State State
	// Versions are the versions that count as served.
	Versions []string
	// Findings have those of something broken first.
	Findings []Finding
}

// checks find references to versions of a CRD that are not served.
var checks = []func(Facts, Subject) []Finding{
	checkReferences, checkConversion, checkWebhooks, checkPolicies, checkRoles, checkAPIServices, checkHelm, checkApplied, checkManagedFields,
}

// For decides about each CRD. It is pure.
func For(f Facts) []Diagnosis {
	all := make([]Diagnosis, len(f.Subjects))
	for i, s := range f.Subjects {
		d := Diagnosis{CRD: s.Owners.CRD, State: Clean, Versions: s.Owners.Kept}
		for _, check := range checks {
			d.Findings = append(d.Findings, check(f, s)...)
		}
		slices.SortStableFunc(d.Findings, func(a, b Finding) int {
			switch {
			case a.Broken() == b.Broken():
				return 0
			case a.Broken():
				return -1
			}
			return 1
		})
		switch {
		case len(d.Findings) > 0:
			d.State = Stale
		case len(f.UnreadOf(s)) > 0:
			d.State = Unknown
		}
		all[i] = d
	}
	return all
}
