package revision

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/godwit-dev/godwit/revision/reference"
)

// Annotations are how an upgrade remembers itself: on the revisions, where every
// process that goes on with it reads them, the manager and the command line alike.
const (
	// FromAnnotation and FromUIDAnnotation name, on a replacement, its source.
	FromAnnotation    = "godwit.dev/upgraded-from"
	FromUIDAnnotation = "godwit.dev/upgraded-from-uid"
	// AlsoFromPrefix is that of annotations that name, on a replacement of several, its
	// other sources; the rest of the key is a source's UID.
	AlsoFromPrefix = "also-upgraded-from.godwit.dev/"
	// ToAnnotation names, on a source that no object refers to any more, its replacement.
	ToAnnotation = "godwit.dev/upgraded-to"
	// UnreferencedAnnotation is since when no object does, in RFC 3339. After a rollback it is
	// on the replacement.
	UnreferencedAnnotation = "godwit.dev/unreferenced-since"
	// RolledBackAnnotation is, on a source, when a rollback to it was asked for, in RFC
	// 3339. ToAnnotation then names the revision that references were repointed from.
	RolledBackAnnotation = "godwit.dev/rolled-back-at"
)

// notedReplacement names the replacement of a source that no object refers to.
func notedReplacement(r *appsv1.ControllerRevision) string { return r.Annotations[ToAnnotation] }

// unreferencedSince is when the last reference was found gone; zero if that was
// never written down, or not by us.
func unreferencedSince(r *appsv1.ControllerRevision) time.Time {
	t, err := time.Parse(time.RFC3339, r.Annotations[UnreferencedAnnotation])
	if err != nil {
		return time.Time{}
	}
	return t
}

// sourceOf is a replacement's first source.
func sourceOf(r *appsv1.ControllerRevision) (name string, uid types.UID) {
	return r.Annotations[FromAnnotation], types.UID(r.Annotations[FromUIDAnnotation])
}

// sourcesOf are all sources of a replacement.
func sourcesOf(r *appsv1.ControllerRevision) map[types.UID]string {
	all := map[types.UID]string{}
	if name, uid := sourceOf(r); name != "" {
		all[uid] = name
	}
	for key, name := range r.Annotations {
		if uid, is := strings.CutPrefix(key, AlsoFromPrefix); is {
			all[types.UID(uid)] = name
		}
	}
	return all
}

// newReplacement completes what a family composed: the source's namespace and owners, so
// that it goes with them, and where it comes from. Who adopts it, if anybody does, is
// its controller.
func newReplacement(composed, from *appsv1.ControllerRevision, adopter *reference.Referrer) *appsv1.ControllerRevision {
	r := composed.DeepCopy()
	r.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"}
	r.Namespace, r.Revision = from.Namespace, from.Revision
	r.OwnerReferences = slices.Clone(from.OwnerReferences)
	if adopter != nil {
		r.OwnerReferences = append(r.OwnerReferences, *adopter.ControllerRef())
	}
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[FromAnnotation], r.Annotations[FromUIDAnnotation] = from.Name, string(from.UID)
	return r
}

// suffixed is the name to take where the name of a replacement is taken. It follows
// from what the replacement holds, so that the next pass finds it.
func suffixed(want *appsv1.ControllerRevision) string {
	digest := sha256.New()
	digest.Write(want.Data.Raw)
	digest.Write([]byte(want.Annotations[FromUIDAnnotation]))
	return WithSuffix(want.Name, hex.EncodeToString(digest.Sum(nil))[:8], validation.DNS1123SubdomainMaxLength)
}

// WithSuffix is a name or a label that ends in a dash and a tail, and has most characters
// at the most. What is cut for it does not end in a separator, which no API server
// takes in front of another one.
func WithSuffix(text, tail string, most int) string {
	head := text[:min(len(text), most-len(tail)-1)]
	return strings.TrimRight(head, "-._") + "-" + tail
}

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
	e.SetEscapeHTML(false) // which is Go's own way
	if err := e.Encode(data); err != nil {
		return ""
	}
	digest := sha256.Sum256(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	return hex.EncodeToString(digest[:])
}
