package hub

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Format of all that the manager and the agents store. It is the only one that this release reads; none means 1.
	Format = 1

	// FormatAnnotation on an object says in which format the annotations and the labels of a migration on it are. It is also on
	// objects of other domains of Godwit.
	FormatAnnotation = "godwit.dev/state-format"

	// FormatKey of a ConfigMap or a Secret has its format.
	FormatKey = "format"
)

// UseNewer is what a user does about state of a newer release.
const UseNewer = "use the release of Godwit that wrote it, or a newer one"

// NewerFormatError refuses what a newer release has stored.
type NewerFormatError struct {
	// What names the object.
	What string
	// Format is as it was read.
	Format string
}

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("%s has format %s, and this release of Godwit reads format %d: a newer release wrote it; %s", e.What, e.Format, Format, UseNewer)
}

// CheckFormat refuses an object whose annotations are of another format.
func CheckFormat(what string, o metav1.Object) error {
	return checkText("annotation "+FormatAnnotation+" of "+what, o.GetAnnotations()[FormatAnnotation])
}

// CheckData refuses the data of a ConfigMap or a Secret of another format.
func CheckData[T ~string | ~[]byte](what string, data map[string]T) error {
	return checkText(what, string(data[FormatKey]))
}

// CheckDocument refuses a JSON document whose field "format" has another value. What is no JSON object passes.
func CheckDocument(what string, document []byte) error {
	var head struct {
		Format json.RawMessage `json:"format"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil //nolint:nilerr // its reader says what it makes of it
	}
	return checkText(what, string(head.Format))
}

func checkText(what, format string) error {
	if format == "" || format == fmt.Sprint(Format) {
		return nil
	}
	return &NewerFormatError{What: what, Format: format}
}
