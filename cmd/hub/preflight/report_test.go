package preflight

import (
	"testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

func TestDecide(t *testing.T) {
	found, lost := []godwit.Finding{{Reason: cluster.ReasonUnavailable, Message: "c1 is not Available"}}, []godwit.Finding{{Reason: ReasonAddOnStays, Message: "add-on a does not move"}}
	for name, test := range map[string]struct {
		reason  string
		checks  []Check
		cluster Cluster
		want    Decision
		reasons int
	}{
		"Ready":            {"Everything was checked.", []Check{{Name: CheckOnSource, Decision: Ready}}, Cluster{}, Ready, 0},
		"Risk":             {"A risk is no reason not to move.", nil, Cluster{AtRisk: lost}, AtRisk, 0},
		"Failure":          {"The migration would fail for the cluster.", nil, Cluster{AtRisk: lost, Reasons: found}, Blocked, 1},
		"Hub":              {"The migration would fail as a whole.", []Check{{Name: CheckTargetHub, Decision: Blocked, Finding: found[0]}}, Cluster{}, Blocked, 1},
		"NotChecked":       {"The preflight has not checked the cluster.", []Check{{Name: CheckOnSource, Decision: NotChecked, Finding: found[0]}}, Cluster{}, NotChecked, 1},
		"NotLookedAtRisk":  {"A known risk is worse than what is not known.", []Check{{Name: CheckOnTarget, Decision: NotChecked, Finding: found[0]}}, Cluster{AtRisk: lost}, AtRisk, 1},
		"UnknownHeartbeat": {"What is not known of an agent is not of a cluster.", []Check{{Name: CheckSourceAgent, Decision: NotChecked}}, Cluster{}, Ready, 0},
	} {
		r := Report{Checks: test.checks, Clusters: []Cluster{test.cluster}}
		r.decide()
		if got := r.Clusters[0]; got.Decision != test.want || len(got.Reasons) != test.reasons {
			t.Errorf("%s: %s The decision is %s with %v, want %s with %d reasons", name, test.reason, got.Decision, got.Reasons, test.want, test.reasons)
		}
	}
}

func TestDecisionOfReport(t *testing.T) {
	r := Report{Checks: []Check{{Decision: Ready}, {Decision: NotChecked}}, Clusters: []Cluster{{Decision: Ready}, {Decision: AtRisk}}}
	if got := r.Decision(); got != AtRisk {
		t.Errorf("the decision is %s, want the worst, AtRisk", got)
	}
	r.Checks = append(r.Checks, Check{Decision: Blocked})
	if got := r.Decision(); got != Blocked {
		t.Errorf("the decision is %s, want the worst, Blocked", got)
	}
}
