package advise

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Change is what happened to a field.
type Change string

const (
	// RequiredFieldAdded means that existing objects lack a field that is required now.
	RequiredFieldAdded Change = "RequiredFieldAdded"
	// FieldMadeImmutable means that a rule forbids changes which were allowed.
	FieldMadeImmutable Change = "FieldMadeImmutable"
	// FormatChanged means that values which were valid may be invalid now.
	FormatChanged Change = "FormatChanged"
	// Restructured means that a field is gone or has another shape, so that its value has to move.
	Restructured Change = "Restructured"
	// StatusOnlyBackfill means that a field of status.atProvider is new.
	StatusOnlyBackfill Change = "StatusOnlyBackfill"
	// NeedsExternalState means that the new value is known to the external system alone.
	NeedsExternalState Change = "NeedsExternalState"
	// Additive means that existing objects stay as they are.
	Additive Change = "Additive"
)

// Approach is how objects get from one release to the next.
type Approach string

const (
	// WebhookAndLateInitialize fills the field of new objects by admission, and of existing objects by
	// writes that pass the same admission.
	WebhookAndLateInitialize Approach = "WebhookAndLateInitialize"
	// Validation has the API server refuse what is not allowed.
	Validation Approach = "Validation"
	// Webhook transforms objects at admission.
	Webhook Approach = "Webhook"
	// LateInitializeStatus has the provider fill the status at its next observation.
	LateInitializeStatus Approach = "LateInitializeStatus"
	// ControllerLogic has the controller migrate, with the external system.
	ControllerLogic Approach = "ControllerLogic"
	// None means that nothing has to be done.
	None Approach = "None"
	// Undecided means that two schemas do not show the approach: Options has the choices.
	Undecided Approach = "Undecided"
)

// Answer is what the author of the release says about a path.
type Answer string

const (
	// FromObject means that the old object has all that the new structure needs.
	FromObject Answer = "FromObject"
	// ExternalState means that the value is in the external system.
	ExternalState Answer = "ExternalState"
	// Unused means that the value is no longer needed.
	Unused Answer = "Unused"
	// Backfill means that the field of the status has to be filled for existing objects.
	Backfill Answer = "Backfill"
	// NoBackfill means that the field of the status may stay empty until the provider writes it.
	NoBackfill Answer = "NoBackfill"
)

// Answers are all answers.
var Answers = []Answer{FromObject, ExternalState, Unused, Backfill, NoBackfill}

// Annotation on the CRD of the new release has answers, as PATH=ANSWER, separated by commas.
const Annotation = "godwit.dev/migration-answers"

// Advice is about one path of a schema.
type Advice struct {
	// CRD and Version name the schema of the new release.
	CRD     string `json:"crd"`
	Version string `json:"version"`
	// Path is as in spec.forProvider.name; [] stands for the items of a list, {} for the values of a map.
	Path     string   `json:"path"`
	Change   Change   `json:"change"`
	Approach Approach `json:"approach"`
	// Options are the approaches to choose from if Approach is Undecided.
	Options   []Approach `json:"options"`
	Rationale string     `json:"rationale"`
}

// Needed reports whether something has to be done.
func (a Advice) Needed() bool { return a.Approach != None }

// ParseAnswer reads PATH=ANSWER.
func ParseAnswer(text string) (path string, answer Answer, err error) {
	path, word, ok := strings.Cut(text, "=")
	answer = Answer(word)
	if !ok || path == "" || !slices.Contains(Answers, answer) {
		return "", "", fmt.Errorf("write an answer as PATH=ANSWER, of which ANSWER is %s", joined(Answers))
	}
	return path, answer, nil
}

func joined(all []Answer) string {
	words := make([]string, len(all))
	for i, one := range all {
		words[i] = string(one)
	}
	return strings.Join(words, ", ")
}

// For compares two releases of a CRD. Answers are those of the command line; the annotation of the new CRD
// adds others. The advice is in the order of versions and paths.
func For(before, after *apiextensionsv1.CustomResourceDefinition, answers map[string]Answer) ([]Advice, error) {
	known, err := withAnnotation(after, answers)
	if err != nil {
		return nil, err
	}
	all := []Advice{}
	for _, pair := range versions(before, after) {
		all = append(all, pair.compare(after.Name, known).advice...)
	}
	return all, nil
}

// Stricter returns the changes between two releases of a version by which the API server may refuse objects that it accepts today.
func Stricter(before, after apiextensionsv1.CustomResourceDefinitionVersion) []Advice {
	c := versionPair{before, after}.compare("", nil)
	return slices.DeleteFunc(c.advice, func(a Advice) bool {
		return a.Change != RequiredFieldAdded && a.Change != FormatChanged && !slices.Contains(c.retyped, a.Path)
	})
}

func withAnnotation(crd *apiextensionsv1.CustomResourceDefinition, answers map[string]Answer) (map[string]Answer, error) {
	known := map[string]Answer{}
	for _, text := range strings.FieldsFunc(crd.Annotations[Annotation], func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		path, answer, err := ParseAnswer(text)
		if err != nil {
			return nil, fmt.Errorf("annotation %s of customresourcedefinition %s: %q: %w", Annotation, crd.Name, text, err)
		}
		known[path] = answer
	}
	maps.Copy(known, answers)
	return known, nil
}

// versionPair is a version of each release.
type versionPair struct {
	before, after apiextensionsv1.CustomResourceDefinitionVersion
}

// compare collects the advice for a version, in the order of paths.
func (p versionPair) compare(crd string, answers map[string]Answer) comparison {
	c := comparison{crd: crd, version: p.after.Name, answers: answers}
	c.schema("", schemaOf(p.before), schemaOf(p.after))
	slices.SortStableFunc(c.advice, func(a, b Advice) int { return cmp.Compare(a.Path, b.Path) })
	return c
}

// versions pairs versions of the same name, and the storage versions if they differ: objects move from the
// one to the other.
func versions(before, after *apiextensionsv1.CustomResourceDefinition) []versionPair {
	var pairs []versionPair
	var stored versionPair
	for _, n := range after.Spec.Versions {
		for _, o := range before.Spec.Versions {
			if o.Name == n.Name {
				pairs = append(pairs, versionPair{o, n})
			}
			if o.Storage && n.Storage && o.Name != n.Name {
				stored = versionPair{o, n}
			}
		}
	}
	if stored.after.Name != "" && !slices.ContainsFunc(pairs, func(p versionPair) bool { return p.after.Name == stored.after.Name }) {
		pairs = append(pairs, stored)
	}
	return pairs
}

func schemaOf(v apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return apiextensionsv1.JSONSchemaProps{}
	}
	return *v.Schema.OpenAPIV3Schema
}
