package providerlint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
)

const manifest = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: members.example.org
  annotations:
    godwit.dev/external-name-fields: %s
spec:
  group: example.org
  names: {kind: Member, plural: members, categories: [crossplane, managed]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        %s
        properties:
          spec:
            type: object
            %s
            properties:
              forProvider:
                type: object
                %s
                properties:
                  group: {type: string, %s}
                  groupRef: {type: string}
                  member: {type: string}
                  stage: {type: string, enum: [dev, prod]}
`

// member is a CRD with rules at each level, of which a case changes one.
type member struct {
	keys, root, spec, fields, group string
}

func (m member) yaml() string {
	if m.keys == "" {
		m.keys = "spec.forProvider.group=Immutable"
	}
	if m.root == "" {
		m.root = "required: [spec]"
	}
	if m.spec == "" {
		m.spec = "required: [forProvider]"
	}
	return fmt.Sprintf(manifest, m.keys, m.root, m.spec, m.fields, m.group)
}

func rule(text string) string { return fmt.Sprintf(`x-kubernetes-validations: [{rule: %q}]`, text) }

func TestCheckCRDs(t *testing.T) {
	const setOnce = "!has(oldSelf.group) || has(self.group) && self.group == oldSelf.group"
	cases := map[string]struct {
		reason string
		crd    member
		want   []*godwit.Reason
	}{
		"no rule": {
			reason: "it can change, and it can be removed",
			crd:    member{}, want: []*godwit.Reason{KeyCanChange, KeyCanBeRemoved},
		},
		"a rule on an optional field": {
			reason: "it is not evaluated when the field is removed",
			crd:    member{group: rule("self == oldSelf")}, want: []*godwit.Reason{KeyCanBeRemoved},
		},
		"a rule on a required field": {
			reason: "the schema refuses the removal",
			crd:    member{fields: "required: [group]", group: rule("self == oldSelf")},
		},
		"a rule on the parameters": {
			reason: "it is evaluated as long as the parameters exist",
			crd:    member{fields: rule(setOnce)},
		},
		"a rule on parameters that can be removed": {
			reason: "the parameters come back with another value",
			crd:    member{spec: "description: optional parameters", fields: rule(setOnce)}, want: []*godwit.Reason{KeyCanBeRemoved},
		},
		"a rule below a spec that can be removed": {
			reason: "the spec comes back with another value",
			crd:    member{root: "description: optional spec", fields: rule(setOnce)}, want: []*godwit.Reason{KeyCanBeRemoved},
		},
		"a rule on the spec": {
			reason: "it covers the parameters",
			crd: member{spec: rule("!has(oldSelf.forProvider.group) || " +
				"has(self.forProvider) && has(self.forProvider.group) && self.forProvider.group == oldSelf.forProvider.group")},
		},
		"other words for the same": {
			reason: "rules are evaluated, and their text does not matter",
			crd:    member{fields: rule("oldSelf.?group.orValue('') == '' || self.?group.orValue('') == oldSelf.group")},
		},
		"letter case is ignored": {
			reason: "a GUID in upper case is the same",
			crd:    member{fields: rule("!has(oldSelf.group) || has(self.group) && self.group.lowerAscii() == oldSelf.group.lowerAscii()")},
		},
		"a rule for the format": {
			reason: "it refuses values, and no change",
			crd:    member{fields: "required: [group]", group: rule("self.matches('^[0-9a-f-]{36}$')")}, want: []*godwit.Reason{KeyCanChange},
		},
		"format and identity in one rule": {
			reason: "the rule refuses text that is no GUID before and after, so that GUIDs are tried",
			crd:    member{fields: "required: [group]", group: rule("self.matches('^[0-9a-f-]{36}$') && self == oldSelf")},
		},
		"a rule about another field": {
			reason: "it does not protect this one",
			crd:    member{fields: rule("!has(oldSelf.member) || has(self.member) && self.member == oldSelf.member")},
			want:   []*godwit.Reason{KeyCanChange, KeyCanBeRemoved},
		},
		"one of two is required": {
			reason: "the rule refuses an object with neither, whatever it was before",
			crd:    member{fields: rule("has(self.group) || has(self.groupRef)")}, want: []*godwit.Reason{KeyCanChange, KeyCanBeRemoved},
		},
		"a mutable segment": {
			reason: "it is exempt", crd: member{keys: "spec.forProvider.member=Mutable"},
		},
		"a part of an enumeration": {
			reason: "its values are tried",
			crd:    member{keys: "spec.forProvider.stage=Immutable"}, want: []*godwit.Reason{KeyCanChange, KeyCanBeRemoved},
		},
		"a rule for one direction": {
			reason: "the other direction is still open",
			crd: member{keys: "spec.forProvider.stage=Immutable", fields: "required: [stage]\n                " +
				rule("oldSelf.stage != 'prod' || self.stage == 'prod'")}, want: []*godwit.Reason{KeyCanChange},
		},
		"a rule for some values": {
			reason: "other values can change",
			crd:    member{fields: "required: [group]", group: rule("oldSelf != 'aaa' || self == oldSelf")}, want: []*godwit.Reason{KeyCanChange},
		},
		"a removal that only some values refuse": {
			reason: "other values can be removed",
			crd:    member{group: rule("self == oldSelf"), fields: rule("!has(oldSelf.group) || oldSelf.group != 'aaa' || has(self.group)")},
			want:   []*godwit.Reason{KeyCanBeRemoved},
		},
		"no key in the spec":   {reason: "the external system makes it", crd: member{keys: "None"}},
		"a misspelled word":    {reason: "it is not taken for an exemption", crd: member{keys: "spec.forProvider.group=mutable"}, want: []*godwit.Reason{KeyUnreadable}},
		"an empty declaration": {reason: "nothing is declared", crd: member{keys: `""`}, want: []*godwit.Reason{KeyUnreadable}},
		"a misspelled field": {
			reason: "it would be exempt", crd: member{keys: "spec.forProvider.grup=Immutable"}, want: []*godwit.Reason{KeyFieldMissing},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "crd.yaml", tc.crd.yaml())
			findings, err := Check(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, reasons(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", tc.reason, diff, findings)
			}
		})
	}
}

func reasons(findings []Finding) (all []*godwit.Reason) {
	for _, f := range findings {
		all = append(all, f.Reason)
	}
	return all
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a finding tells the author to write removes the finding.
func TestAdviceIsEnough(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "crd.yaml", member{}.yaml())
	findings, err := Check(t.Context(), folder)
	if err != nil || len(findings) == 0 {
		t.Fatal(findings, err)
	}
	_, marker, found := strings.Cut(findings[0].Message, `XValidation:rule="`)
	text, _, ends := strings.Cut(marker, `",message=`)
	if !found || !ends || !strings.Contains(findings[0].Message, "Write on spec.forProvider") {
		t.Fatalf("no rule in %q", findings[0].Message)
	}
	write(t, folder, "crd.yaml", member{fields: rule(text)}.yaml())
	if findings, err := Check(t.Context(), folder); len(findings) > 0 || err != nil {
		t.Errorf("after the advice: %v, %v", findings, err)
	}
}

func TestCheckSource(t *testing.T) {
	cases := map[string]struct {
		reason string
		source string
		want   []string
	}{
		"a reason": {
			reason: "constants and sums are read",
			source: `import "github.com/godwit-dev/godwit/externalname/crossplane"
const why = "The plan is known " + "later."
var _ = []crossplane.Exception{{Rule: crossplane.RuleNameFromCreate, Reason: why}, {crossplane.RuleNameFromCreate, "Hybrid."}}
var _ = crossplane.Exception{Rule: crossplane.RuleNameFromCreate, Reason: ("Hybrid.")}`,
		},
		"no reason": {
			reason: "of a list and of its own, by another name of the package",
			source: `import xp "github.com/godwit-dev/godwit/externalname/crossplane"
var _ = []xp.Exception{{Rule: xp.RuleNameFromCreate},
	{Rule: xp.RuleNameFromCreate, Reason: " "}}
var _ = xp.Exception{}`,
			want: []string{"3 ExceptionWithoutReason", "4 ExceptionWithoutReason", "5 ExceptionWithoutReason"},
		},
		"a reason that is made": {
			reason: "nothing is known of it",
			source: `import "github.com/godwit-dev/godwit/externalname/crossplane"
var _ = crossplane.Exception{Reason: why()}
func why() string { return "" }`,
			want: []string{"3 ExceptionUnreadable"},
		},
		"constants in a circle": {
			reason: "the file does not compile, and the check ends",
			source: `import "github.com/godwit-dev/godwit/externalname/crossplane"
const a, b = b, a
var _ = crossplane.Exception{Reason: a}`,
			want: []string{"4 ExceptionUnreadable"},
		},
		"a hybrid kind without an exception": {
			reason: "it would be refused at startup",
			source: `import "github.com/godwit-dev/godwit/externalname/crossplane"
func kind() crossplane.Resource[*M, K, X] {
	return crossplane.Resource[*M, K, X]{KeyFromStatus: f}
}
var _ = crossplane.Resource[*M, K, X]{KeyFromStatus: f, Exceptions: declared}`,
			want: []string{"4 ExceptionMissing"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "kind.go", "package p\n"+tc.source)
			findings, err := Check(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings {
				got = append(got, fmt.Sprint(f.Line, " ", f.Reason))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Nothing that could be checked is no success.
func TestCheckOfNothing(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "other.go", "package p\ntype Exception struct{ Reason string }\nvar _ = Exception{}")
	write(t, folder, "other.yaml", "{{ a template }}\n---\nkind: Service\n")
	write(t, folder, "kind_test.go", "no Go")
	if _, err := Check(t.Context(), folder); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v, want %v", err, ErrNothing)
	}
	if _, err := Check(t.Context(), filepath.Join(folder, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	write(t, folder, "broken.go", "no Go")
	if _, err := Check(t.Context(), folder); err == nil || !strings.Contains(err.Error(), "broken.go") {
		t.Errorf("a file that is no Go: %v", err)
	}
}

// A CRD within a template of a chart can't be checked, and is not taken for a good one.
func TestTemplateOfACRD(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "crd.yaml", "{{- if .Values.crds }}\n"+member{fields: rule("false")}.yaml()+"{{- end }}\n")
	findings, err := Check(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*godwit.Reason{SchemaUnreadable}, reasons(findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManagedCRDsMustDeclareTheirKey(t *testing.T) {
	folder := t.TempDir()
	text := strings.Replace(member{}.yaml(), "  annotations:\n    godwit.dev/external-name-fields: spec.forProvider.group=Immutable\n", "", 1)
	write(t, folder, "crd.yaml", text)
	findings, err := Check(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*godwit.Reason{KeyNotDeclared}, reasons(findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The providers of this repository follow what they are examples of.
func TestProvidersOfThisRepository(t *testing.T) {
	for _, folder := range []string{"examples/provider-ldap", "test/jobservice", "test/externalname"} {
		findings, err := Check(t.Context(), filepath.Join("..", "..", "..", "..", filepath.FromSlash(folder), "..."))
		if err != nil || len(findings) > 0 {
			t.Errorf("%s: findings %v, error %v", folder, findings, err)
		}
	}
}
