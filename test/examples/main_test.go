package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/godwit-dev/godwit/test/controlplane"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// TestExamplesMigrateWithTheirPermissionsOnly runs each example. By the API server's audit log, no request was refused, and
// each permission of its markers was used.
func TestExamplesMigrateWithTheirPermissionsOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	plane := controlplane.Options{
		APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log},
	}.StartFor(t)
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			p := newPlay(e, plane, filepath.Join("..", "..", "examples"), t.Output())
			if err := p.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			granted, err := rules(p.dir)
			if err != nil {
				t.Fatal(err)
			}
			mustBeUsed(t, granted, requests(t, log, e.name))
		})
	}
}

// request is a request in the audit log.
type request struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	Annotations map[string]string
}

func requests(t *testing.T, log, user string) []request {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []request
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.User.Username != user {
			continue
		}
		all = append(all, r)
		if r.Annotations["authorization.k8s.io/decision"] != "allow" {
			t.Errorf("refused request: %+v", r)
		}
	}
	return all
}

// mustBeUsed checks each verb of each rule, except two that the examples do not reach.
func mustBeUsed(t *testing.T, granted map[string][]rbacv1.PolicyRule, used []request) {
	t.Helper()
	for namespace, rules := range granted {
		for _, rule := range rules {
			for _, verb := range rule.Verbs {
				switch {
				case verb == "list" && slices.Contains(rule.Verbs, "watch"):
					continue // informers list where the API server does not stream lists
				case verb == "patch" && slices.Contains(rule.Resources, "events"):
					continue // a repeated event is a patch
				}
				covers := func(r request) bool { return r.Verb == verb && allows(rule, namespace, r) }
				if !slices.ContainsFunc(used, covers) {
					t.Errorf("the marker for %s of %v in %v grants a permission that is not used", verb, rule.Resources, rule.APIGroups)
				}
			}
		}
	}
}

func allows(rule rbacv1.PolicyRule, namespace string, r request) bool {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return slices.Contains(rule.APIGroups, r.ObjectRef.APIGroup) &&
		(slices.Contains(rule.Resources, resource) || slices.Contains(rule.Resources, "*")) &&
		(rule.ResourceNames == nil || slices.Contains(rule.ResourceNames, r.ObjectRef.Name)) &&
		(namespace == "" || namespace == r.ObjectRef.Namespace)
}
