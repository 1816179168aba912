package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// goName begins the comment of a Go type.
var goName = regexp.MustCompile(`^\w+`)

// Files of CRDs end with the plural of the kind.
const (
	godwitKinds = "api/v1alpha1/crd/godwit.dev_"
	hubKinds    = "cmd/hub/api/v1alpha1/crd/global-hub.open-cluster-management.io_"
)

// kindPage is about the kind of a CRD, with an example of one.
func kindPage(file, example string) func() (string, error) {
	return func() (string, error) {
		text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(file)+".yaml"))
		if err != nil {
			return "", err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return "", err
		}
		return aboutKind(crd, example), nil
	}
}

func aboutKind(crd *apiextensionsv1.CustomResourceDefinition, example string) string {
	version := crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	var page strings.Builder
	fmt.Fprintf(&page, "%s# %s\n\n%s\n\n", generated, crd.Spec.Names.Kind, schema.Description)
	fmt.Fprintf(&page, "```yaml\napiVersion: %s/%s\nkind: %s\n%s```\n\n", crd.Spec.Group, version.Name, crd.Spec.Names.Kind, example)
	fmt.Fprintf(&page, "Its scope is %s. For kubectl it is `%s` or `%s`, and in the category `%s`.",
		crd.Spec.Scope, crd.Spec.Names.Plural, crd.Spec.Names.ShortNames[0], crd.Spec.Names.Categories[0])
	if rules := messages(schema); len(rules) > 0 {
		page.WriteString(" " + sentence(strings.Join(rules, "; ")))
	}
	page.WriteString("\n")
	for _, part := range []string{"spec", "status"} {
		s := schema.Properties[part]
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", part, sentence("The "+part+goName.ReplaceAllString(s.Description, "")))
		if rules := messages(&s); len(rules) > 0 {
			fmt.Fprintf(&page, "\n%s\n", sentence(strings.Join(rules, "; ")))
		}
		fields := newTable("field", "type", "meaning")
		addFields(fields, "", &s)
		fmt.Fprintf(&page, "\n%s", fields)
	}
	page.WriteString("\nWhat the conditions and their reasons mean is in [Events, conditions and reasons](events.md).\n")
	return page.String()
}

// addFields goes down to the leaves. A condition is the same everywhere.
func addFields(t *table, prefix string, s *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		t.row(code(prefix+name), typeOf(&p), strings.TrimSpace(fieldComment(name, p.Description)+" "+constraints(&p)))
		switch {
		case name == "conditions":
		case p.Items != nil && p.Items.Schema != nil && len(p.Items.Schema.Properties) > 0:
			addFields(t, prefix+name+"[].", p.Items.Schema)
		default:
			addFields(t, prefix+name+".", &p)
		}
	}
}

func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeOf(s.Items.Schema)
	case s.Format == "date-time":
		return "time"
	}
	return s.Type
}

// constraints returns the constraints that the API server enforces.
func constraints(s *apiextensionsv1.JSONSchemaProps) string {
	var all []string
	values := s.Enum
	if s.Items != nil && s.Items.Schema != nil {
		values = s.Items.Schema.Enum
	}
	if len(values) > 0 {
		var names []string
		for _, v := range values {
			var name string
			if err := json.Unmarshal(v.Raw, &name); err != nil {
				name = string(v.Raw)
			}
			names = append(names, code(name))
		}
		all = append(all, "One of "+strings.Join(names, ", ")+".")
	}
	if s.Minimum != nil && s.Maximum != nil {
		all = append(all, fmt.Sprintf("From %g to %.0f.", *s.Minimum, *s.Maximum))
	}
	if s.MaxItems != nil {
		all = append(all, fmt.Sprintf("At most %d.", *s.MaxItems))
	}
	if s.Default != nil {
		all = append(all, "Default: "+code(string(s.Default.Raw))+".")
	}
	for _, m := range messages(s) {
		all = append(all, sentence(m))
	}
	return strings.Join(all, " ")
}

// messages returns the messages of the validation rules.
func messages(s *apiextensionsv1.JSONSchemaProps) []string {
	var all []string
	for _, v := range s.XValidations {
		if v.Rule != "self == oldSelf" { // that a field stays as it is, its parent says of all of them
			all = append(all, v.Message)
		}
	}
	return all
}
