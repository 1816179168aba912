package lineage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
)

// SuffixedName is the name of a replacement whose own name is taken. It follows from what the
// replacement stores, so that the next pass finds it.
func SuffixedName(want *appsv1.ControllerRevision) string {
	digest := sha256.New()
	digest.Write(want.Data.Raw)
	digest.Write([]byte(want.Annotations[FromUIDAnnotation]))
	return WithSuffix(want.Name, hex.EncodeToString(digest.Sum(nil))[:8], validation.DNS1123SubdomainMaxLength)
}

// WithSuffix is as in package revision.
func WithSuffix(text, tail string, most int) string {
	head := text[:min(len(text), most-len(tail)-1)]
	return strings.TrimRight(head, "-._") + "-" + tail
}

// Hash is as in package revision.
func Hash(r *appsv1.ControllerRevision) string {
	var data any
	if err := utiljson.Unmarshal(r.Data.Raw, &data); err != nil {
		return ""
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // Go escapes HTML by default, jq does not
	if err := e.Encode(data); err != nil {
		return ""
	}
	digest := sha256.Sum256(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	return hex.EncodeToString(digest[:])
}
