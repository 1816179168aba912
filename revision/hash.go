package revision

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Hash tells what a revision holds from what any other holds: the SHA-256, in hex, of
// its data as JSON without white space, the keys of each object in order. The bytes
// alone would prove nothing, since no backup keeps them: clients and servers write the
// same data in other ways. This is the same of what kubectl reads, of a manifest in a
// backup, and of what the API server stores:
//
//	kubectl get controllerrevision NAME -o json | jq -jcS .data | sha256sum
//
// It is empty where the data is no JSON.
func Hash(r *appsv1.ControllerRevision) string {
	var data any
	if err := utiljson.Unmarshal(r.Data.Raw, &data); err != nil {
		return ""
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // which is Go's own way, and nobody else's
	if err := e.Encode(data); err != nil {
		return ""
	}
	digest := sha256.Sum256(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	return hex.EncodeToString(digest[:])
}
