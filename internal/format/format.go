// Package format has the version of what Godwit stores on a cluster, so that a program refuses what a newer release has
// stored instead of misreading it. docs/reference/state.md lists all that is stored.
//
// A JSON document has its format in the field "format". An object whose state is in annotations with a single value each has
// it in [Annotation], a ConfigMap or a Secret with several keys in [Key]. Without any the format is 1, which is that of v0.1.0:
// each reader checks by itself whether a document of format 1 is complete.
package format

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Current is the format that this release writes, and the only one that it reads.
	Current = 1

	// Annotation on an object says in which format Godwit's other annotations of it are, or its own fields where it is of a kind
	// of Godwit. A release writes it when a single value has another meaning than in format 1.
	Annotation = "godwit.dev/state-format"

	// Key of a ConfigMap or a Secret whose state is in several keys has its format.
	Key = "format"
)

// NewerError refuses what a newer release has stored.
type NewerError struct {
	// What names the document and the object that has it.
	What string
	// Format is as it was read.
	Format string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has format %s, and this release of Godwit reads format %d: a newer release wrote it", e.What, e.Format, Current)
}

// Do is what a user does about state of a newer release.
const Do = "use the release of Godwit that wrote it, or a newer one"

// Check refuses a document of another format than [Current]. What is no JSON object passes: its reader says what it makes of
// that. So does a document without a format.
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

// CheckNumber is [Check] for a format that was read with its document, where 0 is none.
func CheckNumber(what string, format int64) error {
	if format == 0 || format == Current {
		return nil
	}
	return &NewerError{What: what, Format: fmt.Sprint(format)}
}

// CheckObject refuses an object whose [Annotation] names another format than [Current].
func CheckObject(what string, o metav1.Object) error {
	if text, ok := o.GetAnnotations()[Annotation]; ok && text != fmt.Sprint(Current) {
		return &NewerError{What: "annotation " + Annotation + " of " + what, Format: fmt.Sprintf("%q", text)}
	}
	return nil
}

// CheckData refuses the data of a ConfigMap or a Secret whose [Key] has another format than [Current].
func CheckData[T ~string | ~[]byte](what string, data map[string]T) error {
	if text, ok := data[Key]; ok && string(text) != fmt.Sprint(Current) {
		return &NewerError{What: what, Format: string(text)}
	}
	return nil
}
