package rescue

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/kube"
)

// probeVersion is a version that the rescue adds and serves. No client uses its name. It keeps every field, so that a list
// at it shows objects as they are stored. It also shows what an API server has adopted: the change of the rescue if it
// serves the version, the restored spec if it does not.
const probeVersion = "godwitrescue"

// Journal is what a rescue has changed of a CRD. The zero value means that no rescue is under way.
type Journal struct {
	CRDUID types.UID `json:"crdUID"`
	// Spec is the SHA-256 of the spec before the rescue.
	Spec string `json:"spec"`
	// Added are the missing versions.
	Added []string `json:"added"`
	// StoredVersions are status.storedVersions before the rescue.
	StoredVersions []string `json:"storedVersions"`
	// Conversion is spec.conversion before the rescue, if the rescue has replaced it.
	Conversion *apiextensionsv1.CustomResourceConversion `json:"conversion,omitempty"`
	// Unserved are the versions that the rescue has then stopped serving, because nothing converts them.
	Unserved []string `json:"unserved,omitempty"`
	// Owners are the managedFields before the rescue.
	Owners []metav1.ManagedFieldsEntry `json:"owners"`
	// Restored means that the spec is restored: what is left is to list the objects, and to restore the owners.
	Restored bool `json:"restored,omitempty"`
}

// stored is a journal as the annotation has it.
type stored struct {
	Format int `json:"format"`
	Journal
}

// IsZero reports whether no rescue is under way.
func (j Journal) IsZero() bool { return j.CRDUID == "" }

// JournalOf reads the journal of a CRD. A journal with the UID of another CRD, as in a restored manifest, does not count.
func JournalOf(crd *apiextensionsv1.CustomResourceDefinition) (Journal, error) {
	var j Journal
	text, ok := crd.Annotations[Annotation]
	if !ok {
		return j, nil
	}
	if err := format.Check("annotation "+Annotation+" of customresourcedefinition "+crd.Name, []byte(text)); err != nil {
		return j, newerFormat(crd, err)
	}
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return Journal{}, fmt.Errorf("read annotation %s of %s: %w", Annotation, crd.Name, err)
	}
	if j.CRDUID != crd.UID {
		return Journal{}, nil
	}
	return j, nil
}

// newerFormat refuses a rescue, and its end: it is not known what a newer release has changed of the CRD, so that it can't be
// restored.
func newerFormat(crd *apiextensionsv1.CustomResourceDefinition, err error) *BlockedError {
	e := blocked(ReasonNewerFormat, err.Error(), useNewerRelease(crd.Name))
	e.Begun = true
	return e
}

// newJournal is the journal of a rescue that begins.
func newJournal(crd *apiextensionsv1.CustomResourceDefinition, missing []string) Journal {
	return Journal{
		CRDUID: crd.UID, Spec: hashOf(crd.Spec), Added: slices.Clone(missing), StoredVersions: slices.Clone(crd.Status.StoredVersions),
		Owners: slices.DeleteFunc(slices.Clone(crd.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" }),
	}
}

// replaceConverter records that the API server converts without the webhook. Only the storage version is then served, since
// nothing converts what clients write at another version.
func (j *Journal) replaceConverter(spec apiextensionsv1.CustomResourceDefinitionSpec) {
	j.Conversion, j.Unserved = spec.Conversion.DeepCopy(), otherServed(spec)
}

func otherServed(spec apiextensionsv1.CustomResourceDefinitionSpec) []string {
	var all []string
	for _, v := range spec.Versions {
		if v.Served && !v.Storage && v.Name != probeVersion {
			all = append(all, v.Name)
		}
	}
	return all
}

func hashOf(spec apiextensionsv1.CustomResourceDefinitionSpec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		return "" // a spec that was decoded can be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// change makes the changes of the rescue to a spec. It is idempotent.
func (j Journal) change(spec *apiextensionsv1.CustomResourceDefinitionSpec, manifest *apiextensionsv1.CustomResourceDefinition) {
	for i := range spec.Versions {
		if v := &spec.Versions[i]; slices.Contains(j.Unserved, v.Name) {
			v.Served = false
		}
	}
	for _, name := range j.Added {
		if versionIndex(*spec, name) < 0 {
			spec.Versions = append(spec.Versions, versionFrom(manifest, name))
		}
	}
	if versionIndex(*spec, probeVersion) < 0 {
		probe := versionFrom(nil, probeVersion)
		probe.Served = true
		spec.Versions = append(spec.Versions, probe)
	}
	if j.Conversion != nil {
		spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
}

// restore takes the changes of the rescue back. It keeps what another client has changed meanwhile.
func (j Journal) restore(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
	spec.Versions = slices.DeleteFunc(spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == probeVersion || slices.Contains(j.Added, v.Name)
	})
	for i := range spec.Versions {
		if v := &spec.Versions[i]; slices.Contains(j.Unserved, v.Name) {
			v.Served = true
		}
	}
	if j.Conversion != nil && (spec.Conversion == nil || spec.Conversion.Strategy == apiextensionsv1.NoneConverter) {
		spec.Conversion = j.Conversion.DeepCopy()
	}
}

// lost returns the changes of the rescue that a CRD does not have any more.
func (j Journal) lost(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	for _, name := range append(slices.Clone(j.Added), probeVersion) {
		if !kube.HasVersion(crd, name) {
			all = append(all, "version "+name)
		}
	}
	if j.Conversion != nil && kube.Converts(crd) {
		all = append(all, "conversion None")
	}
	return all
}

func versionIndex(spec apiextensionsv1.CustomResourceDefinitionSpec, version string) int {
	return slices.IndexFunc(spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}

// versionFrom is a version that is neither served nor stored, with the schema of the manifest. Without one it keeps every
// field.
func versionFrom(manifest *apiextensionsv1.CustomResourceDefinition, name string) apiextensionsv1.CustomResourceDefinitionVersion {
	if manifest != nil {
		if i := versionIndex(manifest.Spec, name); i >= 0 && manifest.Spec.Versions[i].Schema != nil {
			return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Schema: manifest.Spec.Versions[i].Schema.DeepCopy()}
		}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
	}}
}

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patchTo is the patch that writes a spec and a journal to a CRD as it was read. It replaces the resourceVersion by itself,
// which is a conflict if another client has written the CRD since. drop names annotations to remove.
func patchTo(crd *apiextensionsv1.CustomResourceDefinition, spec apiextensionsv1.CustomResourceDefinitionSpec, j Journal, drop ...string) ([]byte, error) {
	ops := []operation{{"replace", "/metadata/resourceVersion", crd.ResourceVersion}}
	if !sameJSON(crd.Spec.Versions, spec.Versions) {
		ops = append(ops, operation{"replace", "/spec/versions", spec.Versions})
	}
	if !sameJSON(crd.Spec.Conversion, spec.Conversion) {
		ops = append(ops, operation{"replace", "/spec/conversion", spec.Conversion})
	}
	if crd.Annotations == nil {
		ops = append(ops, operation{"add", "/metadata/annotations", map[string]string{}})
	}
	for _, name := range drop {
		if _, ok := crd.Annotations[name]; ok {
			ops = append(ops, operation{Op: "remove", Path: annotationPath(name)})
		}
	}
	text, err := json.Marshal(stored{Format: format.Current, Journal: j})
	if err != nil {
		return nil, err
	}
	ops = append(ops, operation{"add", annotationPath(Annotation), string(text)})
	return json.Marshal(ops)
}

func sameJSON(a, b any) bool {
	one, errA := json.Marshal(a)
	two, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(one, two)
}

func annotationPath(name string) string {
	return "/metadata/annotations/" + string(bytes.ReplaceAll([]byte(name), []byte("/"), []byte("~1")))
}
