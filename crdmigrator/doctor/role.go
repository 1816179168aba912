package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
)

// A rule of RBAC has an API group and no version. Two kinds of rules name a version nevertheless: nonResourceURLs with the path of
// a version, and apiGroups with a version after the group, which match no request.

// checkRoles finds such rules, for the first CRD of the group.
func checkRoles(f Facts, s Subject) []Finding {
	if !f.first(s) {
		return nil
	}
	var findings []Finding
	for i := range f.Roles {
		r := &f.Roles[i]
		if r.AggregationRule != nil {
			continue // its rules come from other roles
		}
		for k := range r.Rules {
			path := fmt.Sprintf("/rules/%d", k)
			if urls, stale := f.replaceURLs(s, r.Rules[k].NonResourceURLs); len(stale) > 0 {
				findings = append(findings, Finding{
					Objects: 1,
					Finding: godwit.Finding{
						Severity: godwit.Warns, Reason: ReasonRoleNotServed,
						Message: fmt.Sprintf("%s allows %s, and no CRD of the group serves the version", r, strings.Join(stale, ",")),
						Fix:     r.replace(path+"/nonResourceURLs", r.Rules[k].NonResourceURLs, urls),
					},
				})
			}
			if groups, stale := withoutVersions(s.Owners.Kind.Group, r.Rules[k].APIGroups); len(stale) > 0 {
				findings = append(findings, Finding{
					Objects: 1,
					Finding: godwit.Finding{
						Severity: godwit.Warns, Reason: ReasonRoleGroupHasVersion,
						Message: fmt.Sprintf("%s has the API group %s in a rule, which matches no request: an API group has no version there", r, strings.Join(stale, ",")),
						Fix:     r.replace(path+"/apiGroups", r.Rules[k].APIGroups, groups),
					},
				})
			}
		}
	}
	return findings
}

// String returns the role as in "clusterrole viewer".
func (r *Role) String() string {
	if r.Namespace == "" {
		return "clusterrole " + r.Name
	}
	return "role " + r.Namespace + "/" + r.Name
}

func (r *Role) replace(path string, before, after []string) godwit.Fix {
	o := godwit.Object{Resource: "clusterrole", Name: r.Name}
	if r.Namespace != "" {
		o = godwit.Object{Resource: "role", Namespace: r.Namespace, Name: r.Name}
	}
	if len(after) == 0 {
		return removeRule(o)
	}
	return allowMeant(applied{o, kube.OwnerOf(r, "rules")}, path, before, after)
}

// replaceURLs names the storage version in the paths of versions that no CRD of the group serves.
func (f Facts) replaceURLs(s Subject, urls []string) (replaced, stale []string) {
	for _, url := range urls {
		prefix, version, rest := cutVersion(url, s.Owners.Kind.Group)
		if version != "" && !f.servedInGroup(s.Owners.Kind.Group, version) {
			stale = append(stale, url)
			if url = prefix + s.Owners.Target + rest; s.Owners.Target == "" {
				continue
			}
		}
		if !slices.Contains(replaced, url) {
			replaced = append(replaced, url)
		}
	}
	return replaced, stale
}

// cutVersion finds the version in a path such as /apis/example.com/v1/widgets or /openapi/v3/apis/example.com/v1.
func cutVersion(url, group string) (prefix, version, rest string) {
	before, after, ok := strings.Cut(url, "/apis/"+group+"/")
	if !ok || before != "" && before != "/openapi/v3" {
		return "", "", ""
	}
	end := strings.IndexAny(after, "/*")
	if end < 0 {
		end = len(after)
	}
	return strings.TrimSuffix(url, after), after[:end], after[end:]
}

func withoutVersions(group string, groups []string) (without, stale []string) {
	for _, g := range groups {
		if strings.HasPrefix(g, group+"/") {
			stale = append(stale, g)
			g = group
		}
		if !slices.Contains(without, g) {
			without = append(without, g)
		}
	}
	return without, stale
}

// first reports whether a CRD is the first of its API group.
func (f Facts) first(s Subject) bool {
	at := slices.IndexFunc(f.Subjects, func(other Subject) bool { return other.Owners.Kind.Group == s.Owners.Kind.Group })
	return at >= 0 && f.Subjects[at].Owners.CRD == s.Owners.CRD
}

// servedInGroup reports whether the version counts as served for a CRD of the group.
func (f Facts) servedInGroup(group, version string) bool {
	return slices.ContainsFunc(f.Subjects, func(s Subject) bool { return s.Owners.Kind.Group == group && s.countsAsServed(version) })
}
