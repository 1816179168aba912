package e2e_test

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// permission is one verb on one resource, in a namespace or, if that is empty, in all.
type permission struct{ namespace, verb, group, resource string }

func (p permission) String() string {
	text := p.verb + " " + strings.TrimSuffix(p.resource+"."+p.group, ".")
	if p.namespace != "" {
		text += " in " + p.namespace
	}
	return text
}

// covers reports whether a request needs the permission.
func (p permission) covers(r request) bool {
	resource := strings.TrimSuffix(r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
	return r.Verb == p.verb && r.ObjectRef.APIGroup == p.group && resource == p.resource && (p.namespace == "" || r.ObjectRef.Namespace == p.namespace)
}

// rare are permissions of the hook that no run of the tests uses, and when a run does.
var rare = map[string]string{
	"list namespaces": "the preflight of a CRD whose objects fill more pages than it reads",
	"list storageversionmigrations.migration.k8s.io":                    "kube-storage-version-migrator is installed",
	"list mutatingwebhookconfigurations.admissionregistration.k8s.io":   "admission changes an object in the preflight",
	"list mutatingadmissionpolicies.admissionregistration.k8s.io":       "admission changes an object in the preflight",
	"list validatingwebhookconfigurations.admissionregistration.k8s.io": "admission changes an object in the preflight",
}

// permissionsOf are those of the roles in a manifest.
func permissionsOf(manifest string) ([]permission, error) {
	var all []permission
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		role := rbacv1.Role{}
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, fmt.Errorf("%w: %s", err, document)
		}
		if role.Kind != "Role" && role.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						all = append(all, permission{role.Namespace, verb, group, resource})
					}
				}
			}
		}
	}
	return all, nil
}

// unneeded names permissions that no request has used, unless they are rare, and rare ones that a request has used.
func unneeded(granted []permission, used []request) []string {
	var problems []string
	for _, p := range granted {
		isUsed := slices.ContainsFunc(used, p.covers)
		when, isRare := rare[p.String()]
		switch {
		case !isUsed && !isRare:
			problems = append(problems, "the hook may "+p.String()+", and has not used it")
		case isUsed && isRare:
			problems = append(problems, "the hook has used "+p.String()+", which the test takes for rare: "+when)
		}
	}
	return problems
}

// expectPermissionsUsed fails unless the hook has used each of its permissions but the rare ones, and no request of it was refused.
func (p *product) expectPermissionsUsed() {
	p.s.t.Helper()
	granted, err := permissionsOf(p.s.mustRun(p.s.helmProgram, "template", "product", p.chart, "--namespace="+p.namespace, "--show-only=templates/godwit.yaml"))
	if err != nil || len(granted) <= len(rare) {
		p.s.t.Fatalf("the hook has the permissions %v: %v", granted, err)
	}
	used := slices.DeleteFunc(p.s.requests(), func(r request) bool {
		return r.User.Username != "system:serviceaccount:"+p.namespace+":godwit"
	})
	for _, r := range used {
		if r.Annotations["authorization.k8s.io/decision"] != "allow" {
			p.s.t.Errorf("the API server has refused a request of the hook: %+v", r)
		}
	}
	for _, problem := range unneeded(granted, used) {
		p.s.t.Error(problem)
	}
	p.s.t.Logf("the hook has %d permissions, and has sent %d requests", len(granted), len(used))
}
