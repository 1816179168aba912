package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/godwit-dev/godwit"
)

// ruleList is a list of rules that select the requests for a webhook or a policy.
type ruleList struct {
	reason *godwit.Reason
	// name identifies the webhook or the policy, as in "webhook a of validatingwebhookconfiguration b".
	name string
	// effect is what happens once the CRD lacks every version that a rule names.
	effect string
	// knows is the fix, with a verb %s for the versions to name instead.
	knows  string
	object applied
	// path is the JSON pointer to the list in the object, and guards keep a patch from changing another list.
	path    string
	guards  []step
	entries []admissionregistrationv1.RuleWithOperations
}

// checkRules makes a finding of each rule that names versions of the CRD which are not served.
func (s Subject) checkRules(l ruleList) []Finding {
	var findings []Finding
	for i := range l.entries {
		left, stale := s.versionsOf(&l.entries[i])
		if len(stale) > 0 {
			findings = append(findings, s.ruleFinding(l, i, left, stale))
		}
	}
	return findings
}

// versionsOf returns the versions of a rule about the CRD: those that are served, and those that are not. It returns none that is
// not served if another resource of the rule may have it.
func (s Subject) versionsOf(rule *admissionregistrationv1.RuleWithOperations) (left, stale []string) {
	if !s.named(rule) || slices.Contains(rule.APIVersions, "*") {
		return nil, nil
	}
	for _, v := range rule.APIVersions {
		if s.countsAsServed(v) {
			left = append(left, v)
		} else {
			stale = append(stale, v)
		}
	}
	if len(left) > 0 && !hasOneResource(rule) {
		return left, nil
	}
	return left, stale
}

// hasOneResource reports whether a rule is about one resource.
func hasOneResource(rule *admissionregistrationv1.RuleWithOperations) bool {
	return len(rule.APIGroups) == 1 && len(rule.Resources) == 1
}

func (s Subject) ruleFinding(l ruleList, i int, left, stale []string) Finding {
	f := Finding{Finding: godwit.Finding{Severity: severity(len(left) == 0), Reason: l.reason}, Objects: 1}
	f.Message = fmt.Sprintf("%s names %s: no request has the version", l.name, s.notServed(strings.Join(stale, ",")))
	what := removeFromRule
	rule := &l.entries[i]
	versions := left
	if !hasOneResource(rule) {
		versions = slices.Clone(rule.APIVersions)
	}
	if target := s.Owners.Target; target != "" && !slices.Contains(versions, target) {
		versions = append(versions, target)
	}
	if f.Broken() {
		f.Message = fmt.Sprintf("%s names only %s: %s once the CRD lacks the version", l.name, s.notServed(strings.Join(stale, ",")), l.effect)
		what = fmt.Sprintf(l.knows, strings.Join(versions, ","))
	}
	if len(versions) == 0 {
		f.Fix = nameServed(l.object.Object)
		return f
	}
	f.Fix = godwit.Do(what, replace(l.object, fmt.Sprintf("%s/%d/apiVersions", l.path, i), rule.APIVersions, versions, slices.Clone(l.guards)...))
	return f
}

// named reports whether a rule is about the resource of the CRD. A rule for all resources of the group is about it if it names a
// version that the CRD has.
func (s Subject) named(rule *admissionregistrationv1.RuleWithOperations) bool {
	if !slices.Contains(rule.APIGroups, s.Owners.Kind.Group) {
		return false
	}
	return slices.ContainsFunc(rule.Resources, func(resource string) bool {
		resource, _, _ = strings.Cut(resource, "/")
		return resource == s.Owners.Resource.Resource ||
			resource == "*" && slices.ContainsFunc(rule.APIVersions, func(v string) bool { return slices.Contains(s.Versions, v) })
	})
}
