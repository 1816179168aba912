package managed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/internal/evidence"
)

// Identity selects the fields of status.atProvider that identify the external resource.
type Identity struct {
	// Fields are paths of fields of status.atProvider. None means all top-level fields that are not volatile, and that the spec does
	// not have.
	Fields []string
	// Volatile fields are ignored, beside [evidence.Volatile].
	Volatile []string
	// Spec are the fields of spec.forProvider, by the CRD.
	Spec []string
}

// Hashes returns the hash of each field of status.atProvider that identifies the external resource. It is empty for an
// object that was not observed. A zero value does not count: when crossplane-runtime adds its finalizer, it drops what it has observed, and reports
// success with the zero value of each field, until it observes again.
func (i Identity) Hashes(m Resource) map[string]string {
	identity := map[string]string{}
	add := func(field string, value any) {
		if isZero(value) {
			return
		}
		if text, err := json.Marshal(value); err == nil { // sorts the keys of maps
			sum := sha256.Sum256(text)
			identity[field] = hex.EncodeToString(sum[:hashBytes])
		}
	}
	observed, _, _ := unstructured.NestedMap(m.Object, "status", "atProvider")
	for _, path := range i.Fields {
		if value, has, err := unstructured.NestedFieldNoCopy(observed, strings.Split(path, ".")...); has && err == nil {
			add(path, value)
		}
	}
	if len(i.Fields) > 0 {
		return identity
	}
	mirrored := i.Mirrored(m)
	for field, value := range observed {
		if i.includes(field) && !slices.Contains(mirrored, field) {
			add(field, value)
		}
	}
	return identity
}

func isZero(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return slices.Contains([]any{nil, "", false, int64(0), float64(0)}, value)
}

// Mirrored returns the fields of status.atProvider that the spec has, unless the user has chosen the fields.
func (i Identity) Mirrored(m Resource) []string {
	if len(i.Fields) > 0 {
		return nil
	}
	observed, _, _ := unstructured.NestedMap(m.Object, "status", "atProvider")
	var fields []string
	for field := range observed {
		_, has, _ := unstructured.NestedFieldNoCopy(m.Object, "spec", "forProvider", field)
		if has || slices.Contains(i.Spec, field) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}

// hashBytes is the length of a hash: the probability that two values match by accident is 2⁻⁶⁴.
const hashBytes = 8

func (i Identity) includes(field string) bool {
	return !slices.Contains(evidence.Volatile, strings.ToLower(field)) && !slices.Contains(i.Volatile, field)
}

// Differing returns the fields in which two identities differ.
func Differing(before, after map[string]string) []string {
	var fields []string
	for field, hash := range before {
		if after[field] != hash {
			fields = append(fields, field)
		}
	}
	for field := range after {
		if _, known := before[field]; !known {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}
