package doctor

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
)

// checkPolicies finds versions of a CRD that are not served in admission policies and their bindings: in rules for requests to
// match, in rules for requests to exclude, and in paramKind.
func checkPolicies(f Facts, s Subject) []Finding {
	var findings []Finding
	for i := range f.Policies {
		p := &f.Policies[i]
		if finding := s.checkParameters(p); finding != nil {
			findings = append(findings, *finding)
		}
		findings = append(findings, s.checkMatch(p, "matchConstraints", p.Spec.MatchConstraints)...)
		findings = append(findings, s.checkMatch(p, "matchResources", p.Spec.MatchResources)...)
	}
	return findings
}

func (s Subject) checkMatch(p *AdmissionPolicy, field string, match *admissionregistrationv1.MatchResources) []Finding {
	if match == nil {
		return nil
	}
	rules := ruleList{
		reason: ReasonPolicyNotServed, name: p.Resource + " " + p.Name, object: p.applied(field), path: "/spec/" + field + "/resourceRules",
		effect: "the API server stops applying it to " + s.Owners.CRD, knows: nameInPolicy,
		entries: withoutNames(match.ResourceRules),
	}
	excluded := rules
	excluded.name, excluded.path, excluded.entries = "the exclusion of "+rules.name, "/spec/"+field+"/excludeResourceRules", withoutNames(match.ExcludeResourceRules)
	excluded.effect, excluded.knows = "the API server applies the policy to "+s.Owners.CRD, exclude
	return append(s.checkRules(rules), s.checkRules(excluded)...)
}

// withoutNames returns the rules without the names of objects.
func withoutNames(rules []admissionregistrationv1.NamedRuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	all := make([]admissionregistrationv1.RuleWithOperations, len(rules))
	for i := range rules {
		all[i] = rules[i].RuleWithOperations
	}
	return all
}

func (p *AdmissionPolicy) applied(field string) applied {
	return applied{godwit.Object{Resource: p.Resource, Name: p.Name}, kube.OwnerOf(p, field)}
}

// checkParameters finds a policy whose parameters are objects of the CRD, at a version that is not served.
func (s Subject) checkParameters(p *AdmissionPolicy) *Finding {
	kind := p.Spec.ParamKind
	if kind == nil || kind.Kind != s.Owners.Kind.Kind {
		return nil
	}
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil || gv.Group != s.Owners.Kind.Group || s.countsAsServed(gv.Version) {
		return nil
	}
	effect := "denies every request that the policy matches"
	if p.Spec.FailurePolicy == admissionregistrationv1.Ignore {
		effect = "does not apply the policy"
	}
	f := &Finding{
		Objects: 1,
		Finding: godwit.Finding{
			Severity: godwit.Blocks, Reason: ReasonPolicyParametersNotServed,
			Message: fmt.Sprintf("%s %s has its parameters at %s: once the CRD lacks the version, the API server can't read them, and %s",
				p.Resource, p.Name, s.notServed(gv.Version), effect),
			Fix: nameServed(p.applied("paramKind").Object),
		},
	}
	if target := s.Owners.Target; target != "" {
		f.Fix = readParameters(p.applied("paramKind"), kind.APIVersion, gv.Group+"/"+target, target)
	}
	return f
}
