package advise

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// release is a CRD with one version, whose fields of spec.forProvider and of status.atProvider are JSON schemas.
func release(t *testing.T, spec, status string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text := `{"type":"object","properties":{
		"spec":{"type":"object","properties":{"forProvider":` + object(spec) + `}},
		"status":{"type":"object","properties":{"atProvider":` + object(status) + `}}}}`
	var root apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "members.example.org"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
	}}
	return crd
}

func object(schema string) string {
	if schema == "" {
		return `{"type":"object"}`
	}
	return schema
}

const (
	optional = `{"type":"object","properties":{"a":{"type":"string"}}}`
	field    = "spec.forProvider.a"
)

func TestFor(t *testing.T) {
	none := `{"type":"object"}`
	for reason, test := range map[string]struct {
		before, after, statusBefore, statusAfter string
		answers                                  map[string]Answer
		want                                     []Advice
	}{
		"nothing changes": {before: optional, after: optional},
		"optional field": {before: none, after: optional,
			want: []Advice{{Path: field, Change: Additive, Approach: None}}},
		"required field": {before: none, after: `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`,
			want: []Advice{{Path: field, Change: RequiredFieldAdded, Approach: WebhookAndLateInitialize}}},
		"field becomes required": {before: optional, after: `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`,
			want: []Advice{{Path: field, Change: RequiredFieldAdded, Approach: WebhookAndLateInitialize}}},
		"required field of the external system": {before: none, after: `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`,
			answers: map[string]Answer{field: ExternalState},
			want:    []Advice{{Path: field, Change: NeedsExternalState, Approach: ControllerLogic}}},
		"required field with a default": {before: none, after: `{"type":"object","required":["a"],"properties":{"a":{"type":"string","default":"x"}}}`,
			want: []Advice{{Path: field, Change: Additive, Approach: None}}},
		"immutable": {before: optional, after: `{"type":"object","properties":{"a":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}}`,
			want: []Advice{{Path: field, Change: FieldMadeImmutable, Approach: Validation}}},
		"format": {before: optional, after: `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}`,
			want: []Advice{{Path: field, Change: FormatChanged, Approach: Webhook}}},
		"pattern removed": {before: `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}`, after: optional},
		"value withdrawn": {before: `{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}}}`, after: `{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`,
			want: []Advice{{Path: field, Change: FormatChanged, Approach: Webhook}}},
		"value added": {before: `{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`, after: `{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}}}`},
		"shorter":     {before: optional, after: `{"type":"object","properties":{"a":{"type":"string","maxLength":3}}}`, want: []Advice{{Path: field, Change: FormatChanged, Approach: Webhook}}},
		"number becomes a string": {before: `{"type":"object","properties":{"a":{"type":"integer"}}}`, after: optional,
			want: []Advice{{Path: field, Change: FormatChanged, Approach: Webhook}}},
		"string becomes a list": {before: optional, after: `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`,
			want: []Advice{{Path: field, Change: Restructured, Approach: Undecided, Options: []Approach{Webhook, ControllerLogic}}}},
		"removed": {before: optional, after: none,
			want: []Advice{{Path: field, Change: Restructured, Approach: Undecided, Options: []Approach{Webhook, ControllerLogic}}}},
		"removed, from the object": {before: optional, after: none, answers: map[string]Answer{field: FromObject},
			want: []Advice{{Path: field, Change: Restructured, Approach: Webhook}}},
		"removed, from the external system": {before: optional, after: none, answers: map[string]Answer{field: ExternalState},
			want: []Advice{{Path: field, Change: NeedsExternalState, Approach: ControllerLogic}}},
		"removed, unused": {before: optional, after: none, answers: map[string]Answer{field: Unused},
			want: []Advice{{Path: field, Change: Additive, Approach: None}}},
		"field of a list": {before: `{"type":"object","properties":{"l":{"type":"array","items":` + none + `}}}`,
			after: `{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}}}}`,
			want:  []Advice{{Path: "spec.forProvider.l[].a", Change: RequiredFieldAdded, Approach: WebhookAndLateInitialize}}},
		"field of a map": {before: `{"type":"object","additionalProperties":` + optional + `}`, after: `{"type":"object","additionalProperties":` + none + `}`,
			want: []Advice{{Path: "spec.forProvider{}.a", Change: Restructured, Approach: Undecided, Options: []Approach{Webhook, ControllerLogic}}}},
		"status": {statusAfter: optional,
			want: []Advice{{Path: "status.atProvider.a", Change: StatusOnlyBackfill, Approach: Undecided, Options: []Approach{LateInitializeStatus, None}}}},
		"status, filled": {statusAfter: optional, answers: map[string]Answer{"status.atProvider.a": Backfill},
			want: []Advice{{Path: "status.atProvider.a", Change: StatusOnlyBackfill, Approach: LateInitializeStatus}}},
		"status, not filled": {statusAfter: optional, answers: map[string]Answer{"status.atProvider.a": NoBackfill},
			want: []Advice{{Path: "status.atProvider.a", Change: Additive, Approach: None}}},
		"status, removed": {statusBefore: optional, want: []Advice{{Path: "status.atProvider.a", Change: Additive, Approach: None}}},
	} {
		t.Run(reason, func(t *testing.T) {
			got, err := For(release(t, test.before, test.statusBefore), release(t, test.after, test.statusAfter), test.answers)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if got[i].Rationale == "" || got[i].CRD != "members.example.org" || got[i].Version != "v1" {
					t.Errorf("advice %+v lacks a rationale or a name", got[i])
				}
				got[i].CRD, got[i].Version, got[i].Rationale = "", "", ""
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Answers may stand in the CRD. The command line wins.
func TestAnnotation(t *testing.T) {
	before, after := release(t, optional, ""), release(t, "", "")
	after.Annotations = map[string]string{Annotation: field + "=FromObject"}
	for want, answers := range map[Approach]map[string]Answer{Webhook: nil, ControllerLogic: {field: ExternalState}} {
		got, err := For(before, after, answers)
		if err != nil || len(got) != 1 || got[0].Approach != want {
			t.Errorf("advice is %+v, %v, want %s", got, err, want)
		}
	}
	after.Annotations[Annotation] = "nonsense"
	if _, err := For(before, after, nil); err == nil {
		t.Error("an answer that can't be read is no error")
	}
}

// Objects move from one storage version to the next.
func TestStorageVersions(t *testing.T) {
	before, after := release(t, optional, ""), release(t, "", "")
	after.Spec.Versions[0].Name = "v2"
	got, err := For(before, after, nil)
	if err != nil || len(got) != 1 || got[0].Version != "v2" || got[0].Path != field {
		t.Errorf("advice is %+v, %v", got, err)
	}
}
