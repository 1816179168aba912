package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/format"
)

// Original has the values that a migration has replaced in an object. The update that replaces the values also stores
// them, in one annotation of the object. The annotation is sent with the object, so that the target restores what the
// user had on the source.
type Original struct {
	// Migration is the UID of the migration.
	Migration   string              `json:"migration"`
	Annotations map[string]Replaced `json:"annotations,omitempty"`
	// HubAcceptsClient of a ManagedCluster, if it was replaced.
	HubAcceptsClient *bool `json:"hubAcceptsClient,omitempty"`
	// DeleteOption of a ManifestWork, if it was replaced. It is empty if the ManifestWork had none.
	DeleteOption *workv1.DeleteOption `json:"deleteOption,omitempty"`
}

// storedOriginal is the content of the annotation.
type storedOriginal struct {
	Format int `json:"format"`
	Original
}

// Replaced is an annotation that the migration has set.
type Replaced struct {
	// Was is nil if the object did not have the annotation.
	Was *string `json:"was"`
	Set string  `json:"set"`
}

// OriginalOf reads the original of an object, or returns an empty one of the migration. An
// object that another migration has changed is a failure.
func OriginalOf(o client.Object, migration string) (Original, error) {
	text, ok := o.GetAnnotations()[annotationOriginal]
	if !ok {
		return Original{Migration: migration}, nil
	}
	if err := CheckFormat(o, annotationOriginal); err != nil {
		return Original{}, err
	}
	var original Original
	if err := json.Unmarshal([]byte(text), &original); err != nil {
		return Original{}, Fail(ReasonOtherMigration, "annotation %s of %s can't be read: remove it", annotationOriginal, o.GetName())
	}
	if original.Migration != migration {
		return Original{}, Fail(ReasonOtherMigration, "%s belongs to the migration with UID %s: wait for its end, or abort it. If it has ended without the cluster, remove annotation %s", o.GetName(), original.Migration, annotationOriginal)
	}
	return original, nil
}

// CheckFormat refuses an object that a newer release has annotated, and a document of a newer release
// in an annotation.
func CheckFormat(o client.Object, annotation string) error {
	err := format.CheckObject(o.GetName(), o)
	if err == nil {
		err = format.Check(fmt.Sprintf("annotation %s of %s", annotation, o.GetName()), []byte(o.GetAnnotations()[annotation]))
	}
	if err != nil {
		return RefuseNewer(err)
	}
	return nil
}

// CheckOriginal refuses an object whose original a newer release has stored.
func CheckOriginal(o client.Object) error { return CheckFormat(o, annotationOriginal) }

// HasOriginal reports whether the migration has something to restore in the object. It returns true if a newer release
// stored the original: that may belong to the migration.
func HasOriginal(o client.Object, migration string) bool {
	var original Original
	text, ok := o.GetAnnotations()[annotationOriginal]
	if ok && CheckFormat(o, annotationOriginal) != nil {
		return true
	}
	return ok && json.Unmarshal([]byte(text), &original) == nil && original.Migration == migration
}

// MigrationOf returns the UID of the migration that has changed an object.
func MigrationOf(o client.Object) (migration string, ok bool) {
	var original Original
	if json.Unmarshal([]byte(o.GetAnnotations()[annotationOriginal]), &original) != nil {
		return "", false
	}
	return original.Migration, original.Migration != ""
}

// Replace sets an annotation and saves its original value. A repeated call keeps the first original.
func (original *Original) Replace(o client.Object, name, value string) {
	annotations := clone(o)
	replaced, known := original.Annotations[name]
	if !known {
		if was, ok := annotations[name]; ok {
			replaced.Was = &was
		}
	}
	replaced.Set = value
	original.Annotations = maps.Clone(original.Annotations)
	if original.Annotations == nil {
		original.Annotations = map[string]Replaced{}
	}
	original.Annotations[name] = replaced
	annotations[name] = value
	o.SetAnnotations(annotations)
}

// Has reports whether the migration has replaced an annotation.
func (original Original) Has(name string) bool {
	_, ok := original.Annotations[name]
	return ok
}

// Restore restores an annotation. It keeps a value that a user has set since.
func (original *Original) Restore(o client.Object, name string) {
	replaced, ok := original.Annotations[name]
	if !ok {
		return
	}
	original.Annotations = maps.Clone(original.Annotations)
	delete(original.Annotations, name)
	annotations := clone(o)
	if value, ok := annotations[name]; !ok || value != replaced.Set {
		return
	}
	delete(annotations, name)
	if replaced.Was != nil {
		annotations[name] = *replaced.Was
	}
	o.SetAnnotations(annotations)
}

// RestoreAll restores every annotation.
func (original *Original) RestoreAll(o client.Object) {
	for name := range original.Annotations {
		original.Restore(o, name)
	}
}

// Check refuses an original of another hub that would set an annotation which no migration replaces.
func (original Original) Check(o client.Object, pauses ...string) error {
	allowed := append(slices.Clone(pauses), AnnotationMigrating, AnnotationKlusterletConfig, AnnotationNoAutoImport)
	for name := range original.Annotations {
		if name == "" || !slices.Contains(allowed, name) {
			return Fail(ReasonRefusedObject, "annotation %s of %s names %q, which no migration replaces", annotationOriginal, o.GetName(), name)
		}
	}
	return nil
}

// Save stores the original in the object, or removes it when nothing is left to restore.
func (original *Original) Save(o client.Object) error {
	annotations := clone(o)
	delete(annotations, annotationOriginal)
	if len(original.Annotations) > 0 || original.HubAcceptsClient != nil || original.DeleteOption != nil {
		text, err := json.Marshal(storedOriginal{Format: format.Current, Original: *original})
		if err != nil {
			return fmt.Errorf("save the original values of %s: %w", o.GetName(), err)
		}
		annotations[annotationOriginal] = string(text)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	return nil
}

func clone(o client.Object) map[string]string {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	return annotations
}
