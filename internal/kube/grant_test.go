package kube_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

var (
	widgets    = kubetest.Resource
	crds       = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	crdsStatus = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions/status"}
)

func TestGrantCommand(t *testing.T) {
	cases := map[string]struct {
		reason string
		grant  kube.Grant
		user   string
		flags  []string
	}{
		"user": {
			reason: "kubectl takes resource.group",
			grant:  kube.Grant{Verb: "list", Resource: widgets},
			user:   "jane",
			flags:  []string{"--verb=list", "--resource=widgets.example.com", "--user=jane"},
		},
		"service account": {
			reason: "kubectl takes namespace:name",
			grant:  kube.Grant{Verb: "patch", Resource: widgets},
			user:   "system:serviceaccount:godwit:manager",
			flags:  []string{"--verb=patch", "--resource=widgets.example.com", "--serviceaccount=godwit:manager"},
		},
		"node": {
			reason: "other names of the system are users",
			grant:  kube.Grant{Verb: "patch", Resource: widgets},
			user:   "system:node:cp-1",
			flags:  []string{"--user=system:node:cp-1"},
		},
		"unknown": {
			reason: "the user fills in the name",
			grant:  kube.Grant{Verb: "patch", Resource: widgets},
			flags:  []string{"--user=USER"},
		},
		"subresource": {
			reason: "kubectl takes resource.group/subresource",
			grant:  kube.Grant{Verb: "patch", Resource: crdsStatus, Name: "widgets.example.com"},
			user:   "jane",
			flags:  []string{"--resource=customresourcedefinitions.apiextensions.k8s.io/status"},
		},
		"deep group": {
			reason: "the group keeps its dots",
			grant:  kube.Grant{Verb: "patch", Resource: schema.GroupResource{Group: "a.b.example.com", Resource: "widgets"}},
			user:   "jane",
			flags:  []string{"--resource=widgets.a.b.example.com"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := tc.grant.Command(tc.user)
			words := strings.Fields(command)
			for _, flag := range tc.flags {
				if !slices.Contains(words, flag) {
					t.Errorf("%s\n%s\nlacks %s", tc.reason, command, flag)
				}
			}
			role := words[3]
			if strings.ContainsAny(role, "/.:") {
				t.Errorf("role name %q is not valid in a URL path", role)
			}
			if !slices.Contains(words, "--clusterrole="+role) {
				t.Errorf("%s\nthe binding names another role than %s", command, role)
			}
		})
	}
}

func TestGrantCommandsDoNotCollide(t *testing.T) {
	commands := map[string]kube.Grant{}
	for _, g := range []kube.Grant{
		{Verb: "list", Resource: widgets},
		{Verb: "patch", Resource: widgets},
		{Verb: "patch", Resource: crds, Name: "widgets.example.com"},
		{Verb: "patch", Resource: crdsStatus, Name: "widgets.example.com"},
	} {
		role := strings.Fields(g.Command("jane"))[3]
		if other, taken := commands[role]; taken {
			t.Errorf("%s and %s both create role %s: the second command would fail", other, g, role)
		}
		commands[role] = g
	}
}

func TestGrantString(t *testing.T) {
	if got := (kube.Grant{Verb: "list", Resource: widgets}).String(); got != "list widgets.example.com" {
		t.Errorf("grant on all objects = %q, want %q", got, "list widgets.example.com")
	}
	if got := (kube.Grant{Verb: "patch", Resource: widgets, Name: "a"}).String(); got != "patch widgets.example.com a" {
		t.Errorf("grant on one object = %q, want %q", got, "patch widgets.example.com a")
	}
}
