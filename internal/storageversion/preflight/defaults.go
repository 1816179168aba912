package preflight

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// fillDefaults adds to an object that was read the defaults of the storage version's
// schema. The API server adds them only when the object is written: an object that is
// stored at another version is converted and pruned when it is read, but gets no
// defaults. A preflight must not report them as changes by admission.
func fillDefaults(crd *apiextensionsv1.CustomResourceDefinition, o map[string]any) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && v.Schema != nil {
			fill(v.Schema.OpenAPIV3Schema, o)
		}
	}
}

func fill(s *apiextensionsv1.JSONSchemaProps, value any) {
	switch value := value.(type) {
	case map[string]any:
		if s != nil {
			fillMap(s, value)
		}
	case []any:
		if s != nil && s.Items != nil {
			for _, item := range value {
				fill(s.Items.Schema, item)
			}
		}
	}
}

// fillMap fills the added defaults as well: a default may lack a field for which the
// schema of the field has another default.
func fillMap(s *apiextensionsv1.JSONSchemaProps, value map[string]any) {
	for key := range s.Properties {
		p := s.Properties[key]
		if there, ok := value[key]; p.Default != nil && (!ok || there == nil && !p.Nullable) {
			var d any
			if json.Unmarshal(p.Default.Raw, &d) == nil { // the API server has accepted it, so it is JSON
				value[key] = d
			}
		}
	}
	for key, there := range value {
		if p, ok := s.Properties[key]; ok {
			fill(&p, there)
		} else if s.AdditionalProperties != nil {
			fill(s.AdditionalProperties.Schema, there)
		}
	}
}
