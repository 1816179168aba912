package kube_test

import (
	"testing"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

var widgets = kubetest.Resource

func TestGrantString(t *testing.T) {
	if got := (kube.Grant{Verb: "list", Resource: widgets}).String(); got != "list widgets.example.com" {
		t.Errorf("grant on all objects = %q, want %q", got, "list widgets.example.com")
	}
	if got := (kube.Grant{Verb: "patch", Resource: widgets, Name: "a"}).String(); got != "patch widgets.example.com a" {
		t.Errorf("grant on one object = %q, want %q", got, "patch widgets.example.com a")
	}
}
