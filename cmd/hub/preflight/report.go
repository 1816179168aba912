package preflight

import (
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
)

// Decision is the result of a check, of a cluster, or of the whole preflight.
type Decision string

const (
	// Ready means that everything was checked without a finding.
	Ready Decision = "Ready"
	// NotChecked means that not everything was checked, and that the rest has no finding.
	NotChecked Decision = "NotChecked"
	// AtRisk means that a cluster would move, but would lose something or might fail.
	AtRisk Decision = "AtRisk"
	// Blocked means that the migration would fail.
	Blocked Decision = "Blocked"
)

// severity orders decisions, from the best.
var severity = []Decision{Ready, NotChecked, AtRisk, Blocked}

// Worst returns the worst of the decisions.
func Worst(all ...Decision) Decision {
	worst := Ready
	for _, d := range all {
		if slices.Index(severity, d) > slices.Index(severity, worst) {
			worst = d
		}
	}
	return worst
}

func finding(reason *godwit.Reason, message string) godwit.Finding {
	return godwit.Finding{Reason: reason, Message: message}
}

// Names of the checks that are not for single clusters.
const (
	CheckSourceHub     = "SourceHub"
	CheckTargetHub     = "TargetHub"
	CheckSourceAgent   = "SourceAgent"
	CheckTargetAgent   = "TargetAgent"
	CheckTargetAddress = "TargetAddress"
	CheckSelection     = "Selection"
	CheckOverlap       = "OtherMigrations"
	CheckKlusterlets   = "Klusterlets"
	CheckOnSource      = "ClustersOnSource"
	CheckUserObjects   = "UserObjects"
	CheckOnTarget      = "ClustersOnTarget"
	CheckClocks        = "Clocks"
)

// Check is a result for the migration as a whole.
type Check struct {
	Name     string
	Decision Decision
	// Finding is empty for a check that is Ready.
	godwit.Finding
}

// Cluster is a result for one cluster.
type Cluster struct {
	Name     string
	Decision Decision
	// Reasons say why the cluster would not move, or why this is not known.
	Reasons []godwit.Finding
	// AtRisk says what the cluster would lose.
	AtRisk []godwit.Finding
}

// Report is the result of a preflight.
type Report struct {
	From, To string
	Checks   []Check
	// Clusters are the clusters of the migration, sorted by name. They are empty if the placement can't be resolved.
	Clusters []Cluster
}

// Decision returns the worst decision of all checks and clusters.
func (r Report) Decision() Decision {
	worst := Ready
	for _, c := range r.Checks {
		worst = Worst(worst, c.Decision)
	}
	for _, c := range r.Clusters {
		worst = Worst(worst, c.Decision)
	}
	return worst
}

// add records a check that is not Ready.
func (r *Report) add(name string, d Decision, reason *godwit.Reason, message string) {
	r.Checks = append(r.Checks, Check{name, d, finding(reason, message)})
}

// pass records a check that is Ready.
func (r *Report) pass(name string) { r.Checks = append(r.Checks, Check{Name: name, Decision: Ready}) }

// cluster returns a pointer to the result of a cluster.
func (r *Report) cluster(name string) *Cluster {
	at, _ := slices.BinarySearchFunc(r.Clusters, name, func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
	return &r.Clusters[at]
}

// names returns the names of all clusters.
func (r *Report) names() []string {
	names := make([]string, len(r.Clusters))
	for i, c := range r.Clusters {
		names[i] = c.Name
	}
	return names
}

// decide sets the decision of each cluster. A check that is Blocked blocks every cluster, and a cluster
// is Ready only if it was checked on both hubs.
func (r *Report) decide() {
	var shared []godwit.Finding
	worst := Ready
	for _, c := range r.Checks {
		if c.Decision == Blocked || c.Decision == NotChecked && (c.Name == CheckOnSource || c.Name == CheckOnTarget) {
			shared, worst = append(shared, c.Finding), Worst(worst, c.Decision)
		}
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		c.Decision = worst
		if len(c.AtRisk) > 0 {
			c.Decision = Worst(c.Decision, AtRisk)
		}
		if len(c.Reasons) > 0 {
			c.Decision = Blocked
		}
		c.Reasons = append(c.Reasons, shared...)
	}
}
