package crdmigrator

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func mustParse(t *testing.T, selector string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScope(t *testing.T) {
	byKind, selected := &profile{}, &profile{}
	config := map[schema.GroupKind]*profile{{Group: "example.com", Kind: "Goose"}: byKind}
	opted := map[string]string{AutoMigrateLabel: AutoMigrateValue}
	for reason, test := range map[string]struct {
		scope scope
		name  string
		kind  string
		label map[string]string
		want  *profile
		reads bool // the CRD, to tell
	}{
		"Config knows the kind, whatever its plural": {
			scope: scope{byKind: config}, name: "geese.example.com", kind: "Goose", want: byKind, reads: true},
		"another kind of a configured group": {
			scope: scope{byKind: config}, name: "ducks.example.com", kind: "Duck", reads: true},
		"the kind in another group is another kind": {
			scope: scope{byKind: config}, name: "geese.example.org", kind: "Goose"},
		"a group that ends in the configured one is another group": {
			scope: scope{byKind: config}, name: "geese.sub.example.com", kind: "Goose"},
		"group and default label": {
			scope: scope{selector: Selector{Group: "example.com"}}, name: "ducks.example.com", kind: "Duck", label: opted, want: selected, reads: true},
		"a group without the label is not asked for": {
			scope: scope{selector: Selector{Group: "example.com"}}, name: "ducks.example.com", kind: "Duck"},
		"the label with another value opts out": {
			scope: scope{selector: Selector{Group: "example.com"}}, name: "ducks.example.com", kind: "Duck",
			label: map[string]string{AutoMigrateLabel: "false"}},
		"the label in a group that was not asked for": {
			scope: scope{selector: Selector{Group: "example.com"}}, name: "ducks.example.org", kind: "Duck", label: opted},
		"a label of one's own in any group": {
			scope: scope{selector: Selector{LabelSelector: mustParse(t, "mine=yes")}}, name: "ducks.example.org", kind: "Duck",
			label: map[string]string{"mine": "yes"}, want: selected, reads: true},
		"with a label of one's own the default one means nothing": {
			scope: scope{selector: Selector{LabelSelector: mustParse(t, "mine=yes")}}, name: "ducks.example.org", kind: "Duck", label: opted},
		"Config goes before the label": {
			scope: scope{byKind: config, selector: Selector{Group: "example.com"}}, name: "geese.example.com", kind: "Goose", label: opted, want: byKind, reads: true},
		"without a Selector a label means nothing": {
			scope: scope{byKind: config}, name: "ducks.example.com", kind: "Duck", label: opted, reads: true},
	} {
		t.Run(reason, func(t *testing.T) {
			test.scope.selected = selected
			crd := &apiextensionsv1.CustomResourceDefinition{
				ObjectMeta: metav1.ObjectMeta{Name: test.name, Labels: test.label},
				Spec: apiextensionsv1.CustomResourceDefinitionSpec{
					Group: groupOf(test.name), Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: test.kind},
				},
			}
			if got := test.scope.profileOf(crd); got != test.want {
				t.Errorf("profile %p, want %p", got, test.want)
			}
			if got := test.scope.mayContain(crd); got != test.reads {
				t.Errorf("mayContain: %v, want %v", got, test.reads)
			}
		})
	}
}
