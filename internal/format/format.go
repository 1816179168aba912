// Package format has the version of the state that Godwit stores on a cluster, so that a program refuses state of a
// newer release instead of misreading it. docs/reference/state.md lists all stored state.
//
// A JSON document has its format in the field "format". An object whose state is in single-value annotations has it in
// [Annotation], a ConfigMap or a Secret with several keys in [Key]. If it is missing, the format is 1, that of v0.1.0:
// each reader checks whether a document of format 1 is complete.
package format

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
)

const (
	// Current is the format that this release writes, and the only one that it reads.
	Current = 1

	// Annotation has the format of Godwit's other annotations on the object, or of the object's fields if its kind is
	// Godwit's. A release writes it when a value has another meaning than in format 1.
	Annotation = "godwit.dev/state-format"

	// Key is the data key with the format, in a ConfigMap or a Secret whose state is in several keys.
	Key = "format"
)

// NewerError means that a newer release has stored the state.
type NewerError struct {
	// What names the document and its object.
	What string
	// Format is the format that was read.
	Format string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has format %s, and this release of Godwit reads format %d: a newer release wrote it", e.What, e.Format, Current)
}

// Do is the fix for state of a newer release.
const Do = "use the release of Godwit that wrote it, or a newer one"

// UseNewerRelease returns the fix in [Do].
func UseNewerRelease() godwit.Fix { return godwit.Do(Do) }

// DeclareNewer declares the reason for state of a newer release. The parameter stored continues "A newer release of
// Godwit", and effect is a sentence.
func DeclareNewer(c *godwit.Catalog, stored, effect string, fix godwit.Fix) *godwit.Reason {
	return c.Declare(godwit.Reason{
		Name: "NewerFormat", UserAction: true,
		Meaning: "A newer release of Godwit " + stored + ", in a format that this release does not read. " + effect,
		Fix:     fix,
	})
}

// Check returns a [NewerError] for a document whose format is not [Current]. It accepts a document without a format,
// and text that is not a JSON object: the reader reports that.
func Check(what string, document []byte) error {
	var head struct {
		Format json.RawMessage `json:"format"`
	}
	if err := json.Unmarshal(document, &head); err != nil || head.Format == nil {
		return nil //nolint:nilerr // as documented
	}
	if text := string(head.Format); text != fmt.Sprint(Current) {
		return &NewerError{What: what, Format: text}
	}
	return nil
}

// CheckNumber is like [Check] for a parsed format; 0 means that the document has none.
func CheckNumber(what string, format int64) error {
	if format == 0 || format == Current {
		return nil
	}
	return &NewerError{What: what, Format: fmt.Sprint(format)}
}

// CheckObject returns a [NewerError] for an object whose [Annotation] is not [Current].
func CheckObject(what string, o metav1.Object) error {
	if text, ok := o.GetAnnotations()[Annotation]; ok && text != fmt.Sprint(Current) {
		return &NewerError{What: "annotation " + Annotation + " of " + what, Format: fmt.Sprintf("%q", text)}
	}
	return nil
}

// CheckData returns a [NewerError] for the data of a ConfigMap or a Secret whose [Key] is not [Current].
func CheckData[T ~string | ~[]byte](what string, data map[string]T) error {
	if text, ok := data[Key]; ok && string(text) != fmt.Sprint(Current) {
		return &NewerError{What: what, Format: string(text)}
	}
	return nil
}
