package providerlint

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

// managedCategory is the category that Crossplane's providers give the CRDs of managed resources.
const managedCategory = "managed"

// isManaged reports whether a CRD defines managed resources, by its schema or by its category.
func isManaged(crd *apiextensionsv1.CustomResourceDefinition) bool {
	_, declares := crd.Annotations[fieldmigration.AnnotationKeyFields]
	return declares || slices.Contains(crd.Spec.Names.Categories, managedCategory)
}

// CheckCRD checks the key fields of a CRD in each version that is served.
func CheckCRD(ctx context.Context, file string, crd *apiextensionsv1.CustomResourceDefinition) []Finding {
	finding := Finding{File: file, Subject: crd.Name}
	text, found := crd.Annotations[fieldmigration.AnnotationKeyFields]
	if !found {
		return []Finding{finding.with(KeyNotDeclared, "",
			"does not say which fields make the key of the external resource. Add the annotation %[1]s with PATH=Immutable or PATH=Mutable for each, "+
				"or %[2]s if the external system makes the key: // +kubebuilder:metadata:annotations=\"%[1]s=%[2]s\"",
			fieldmigration.AnnotationKeyFields, fieldmigration.NoKeyFields)}
	}
	if text == fieldmigration.NoKeyFields {
		return nil
	}
	mutable, err := declared(text)
	if err != nil {
		return []Finding{finding.with(KeyUnreadable, "", "annotation %s: %v", fieldmigration.AnnotationKeyFields, err)}
	}
	var all []Finding
	for _, v := range crd.Spec.Versions {
		if v.Served {
			all = append(all, finding.inVersion(ctx, v, mutable)...)
		}
	}
	return all
}

func (f Finding) with(reason *godwit.Reason, path, format string, args ...any) Finding {
	f.Path, f.Finding = path, godwit.Finding{Reason: reason, Message: fmt.Sprintf(format, args...), Fix: reason.Fix}
	return f
}

func (f Finding) inVersion(ctx context.Context, v apiextensionsv1.CustomResourceDefinitionVersion, mutable map[string]bool) []Finding {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return []Finding{f.with(SchemaUnreadable, "", "version %s has no schema", v.Name)}
	}
	rules, err := newVersion(v.Schema.OpenAPIV3Schema)
	if err != nil {
		return []Finding{f.with(SchemaUnreadable, "", "the schema of version %s can't be read: %v", v.Name, err)}
	}
	var all []Finding
	for _, text := range slices.Sorted(maps.Keys(mutable)) {
		path := strings.Split(text, ".")
		if !rules.has(path) {
			all = append(all, f.with(KeyFieldMissing, text, "version %s has no field %s, which annotation %s names", v.Name, text, fieldmigration.AnnotationKeyFields))
			continue
		}
		if mutable[text] {
			continue
		}
		if !rules.refusesChange(ctx, path) {
			all = append(all, f.with(KeyCanChange, text, "%s of version %s is part of the key, and no rule refuses a change. %s", text, v.Name, advice(path)))
		}
		if part := rules.removable(ctx, path); part != nil {
			all = append(all, f.with(KeyCanBeRemoved, text, "%s of version %s is part of the key, and no rule refuses an update without %s. %s",
				text, v.Name, strings.Join(part, "."), removalAdvice(path, part)))
		}
	}
	return all
}

// advice returns the rule to write on the parent of the field.
func advice(path []string) string {
	name := path[len(path)-1]
	shape := externalname.Shape{Segments: []externalname.SegmentShape{{Name: name}}, MaxBytes: externalname.DefaultMaxBytes}
	rules, err := fieldmigration.Constraints(shape, fieldmigration.KeyField{Segment: name, Field: name, Optional: true})
	if err != nil {
		return "Write a rule on " + parent(path)
	}
	return fmt.Sprintf("Write on %s: %s", parent(path), rules[0].Marker())
}

func removalAdvice(path, part []string) string {
	if len(part) == len(path) {
		return advice(path)
	}
	return fmt.Sprintf("Make %s required", strings.Join(part, "."))
}

func parent(path []string) string {
	if len(path) == 1 {
		return "the object"
	}
	return strings.Join(path[:len(path)-1], ".")
}

// fromJSON parses JSON of a schema, which the API server has checked. It returns nil for invalid JSON.
func fromJSON(raw []byte) any {
	var value any
	if !json.Valid(raw) {
		return nil
	}
	_ = utiljson.Unmarshal(raw, &value) // it is valid
	return value
}
