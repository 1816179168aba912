package advise

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// comparison collects the advice for one version.
type comparison struct {
	crd, version string
	answers      map[string]Answer
	advice       []Advice
	retyped      []string // paths whose old values the API server refuses, since they are of another type
}

func (c *comparison) add(path string, change Change, approach Approach, format string, args ...any) {
	c.advice = append(c.advice, Advice{
		CRD: c.crd, Version: c.version, Path: path, Change: change, Approach: approach, Options: []Approach{}, Rationale: fmt.Sprintf(format, args...),
	})
}

// undecided adds a change whose approach two schemas do not show.
func (c *comparison) undecided(path string, change Change, rationale string, options ...Approach) {
	c.add(path, change, Undecided, "%s", rationale)
	c.advice[len(c.advice)-1].Options = options
}

// inStatus reports whether the provider alone writes a path.
func inStatus(path string) bool { return path == "status" || strings.HasPrefix(path, "status.") }

// observed reports whether a path is a field that the provider observes.
func observed(path string) bool { return strings.HasPrefix(path, "status.atProvider.") }

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// schema compares two schemas, with those of their fields.
func (c *comparison) schema(path string, before, after schema) {
	if path == "metadata" || path == "apiVersion" || path == "kind" {
		return
	}
	if before.Type != after.Type && before.Type != "" && after.Type != "" {
		c.typeChanged(path, before, after)
		return
	}
	if !inStatus(path) {
		for _, what := range narrowed(before, after) {
			c.reformatted(path, what)
		}
		c.rules(path, before, after)
		if keepsUnknown(before) && !keepsUnknown(after) {
			c.restructured(path, "unknown fields were stored, and the API server drops them now")
		}
	}
	c.properties(path, before, after)
	if before.Items != nil && before.Items.Schema != nil && after.Items != nil && after.Items.Schema != nil {
		c.schema(path+"[]", *before.Items.Schema, *after.Items.Schema)
	}
	if before.AdditionalProperties != nil && before.AdditionalProperties.Schema != nil && after.AdditionalProperties != nil && after.AdditionalProperties.Schema != nil {
		c.schema(path+"{}", *before.AdditionalProperties.Schema, *after.AdditionalProperties.Schema)
	}
}

func keepsUnknown(s schema) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

// typeChanged adds advice for a field of another type. A number that becomes a string has another format; an
// object that becomes a list has another structure.
func (c *comparison) typeChanged(path string, before, after schema) {
	switch {
	case inStatus(path):
		c.add(path, Additive, None, "the type is %s and was %s; the provider writes the status again", after.Type, before.Type)
	case scalar(before.Type) && scalar(after.Type):
		c.reformatted(path, fmt.Sprintf("the type is %s and was %s", after.Type, before.Type))
	default:
		c.retyped = append(c.retyped, path)
		c.restructured(path, fmt.Sprintf("the type is %s and was %s", after.Type, before.Type))
	}
}

func scalar(t string) bool { return t != "object" && t != "array" }

// reformatted adds advice for values that may be invalid now.
func (c *comparison) reformatted(path, what string) {
	if c.answers[path] == ExternalState {
		c.add(path, NeedsExternalState, ControllerLogic, "%s; the value in the new format is in the external system", what)
		return
	}
	c.add(path, FormatChanged, Webhook, "%s; a webhook writes the new format, for existing objects as soon as they are written", what)
}

// restructured adds advice for values that have to move to another field.
func (c *comparison) restructured(path, what string) {
	switch c.answers[path] {
	case ExternalState:
		c.add(path, NeedsExternalState, ControllerLogic, "%s; the new structure needs the external system", what)
	case Unused:
		c.add(path, Additive, None, "%s; the old values are not needed", what)
	case FromObject:
		c.add(path, Restructured, Webhook, "%s; the old object has all that the new structure needs", what)
	default:
		c.undecided(path, Restructured, what+"; schemas do not say whether values move, and whether the object or the external system has them", Webhook, ControllerLogic)
	}
}

// rules compares validation rules in CEL.
func (c *comparison) rules(path string, before, after schema) {
	for _, rule := range after.XValidations {
		if slices.ContainsFunc(before.XValidations, func(old apiextensionsv1.ValidationRule) bool { return old.Rule == rule.Rule }) {
			continue
		}
		if strings.Contains(rule.Rule, "oldSelf") {
			c.add(path, FieldMadeImmutable, Validation, "the rule %q forbids changes; a rule on an optional field does not see its removal: add one to the object above it", rule.Rule)
			continue
		}
		c.reformatted(path, fmt.Sprintf("the rule %q is new", rule.Rule))
	}
}

// properties compares the fields of an object.
func (c *comparison) properties(path string, before, after schema) {
	for _, field := range slices.Sorted(maps.Keys(after.Properties)) {
		here := join(path, field)
		now := after.Properties[field]
		was, existed := before.Properties[field]
		required := slices.Contains(after.Required, field) && !slices.Contains(before.Required, field)
		switch {
		case required && !inStatus(here):
			c.required(here, existed, now)
		case !existed:
			c.added(here, now)
		}
		if existed {
			c.schema(here, was, now)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(before.Properties)) {
		if _, stays := after.Properties[field]; !stays {
			c.removed(join(path, field), after)
		}
	}
}

func (c *comparison) required(path string, existed bool, now schema) {
	what := "the field is new and required"
	if existed {
		what = "the field is required, and was optional"
	}
	switch {
	case now.Default != nil:
		c.add(path, Additive, None, "%s; the API server writes the default %s", what, now.Default.Raw)
	case c.answers[path] == ExternalState:
		c.add(path, NeedsExternalState, ControllerLogic, "%s, and its value is in the external system", what)
	default:
		c.add(path, RequiredFieldAdded, WebhookAndLateInitialize, "%s; a webhook fills it in new objects, and empty patches have existing objects pass the same webhook", what)
	}
}

func (c *comparison) added(path string, now schema) {
	switch answer := c.answers[path]; {
	case observed(path) && answer == Backfill:
		c.add(path, StatusOnlyBackfill, LateInitializeStatus, "the provider fills the field of existing objects when it observes them")
	case observed(path) && answer == NoBackfill:
		c.add(path, Additive, None, "the field of the status is new, and existing objects need no value")
	case observed(path):
		c.undecided(path, StatusOnlyBackfill, "the field of the status is new; schemas do not say whether existing objects need a value", LateInitializeStatus, None)
	case inStatus(path):
		c.add(path, Additive, None, "the field is new, and the provider writes the status")
	case now.Default != nil:
		c.add(path, Additive, None, "the field is new and optional; the API server writes the default %s", now.Default.Raw)
	default:
		c.add(path, Additive, None, "the field is new and optional")
	}
}

func (c *comparison) removed(path string, parent schema) {
	switch {
	case inStatus(path):
		c.add(path, Additive, None, "the field is removed, and the provider writes the status again")
	case keepsUnknown(parent):
		c.add(path, Additive, None, "the field is removed from the schema, and the API server keeps its values")
	default:
		c.restructured(path, "the field is removed, and the API server drops its values")
	}
}
