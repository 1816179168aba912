package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// same reports whether a revision is the one that was to be made: the same object,
// labelled so, of the same controller.
func same(there, want *appsv1.ControllerRevision) bool {
	a, b := metav1.GetControllerOfNoCopy(there), metav1.GetControllerOfNoCopy(want)
	if a == nil || b == nil || a.UID != b.UID || there.DeletionTimestamp != nil || !labelled(there, want.Labels) {
		return false
	}
	var left, right any
	if json.Unmarshal(there.Data.Raw, &left) != nil || json.Unmarshal(want.Data.Raw, &right) != nil {
		return false
	}
	return reflect.DeepEqual(left, right)
}

// suffixed is the name to take where the name of a successor is taken. It follows
// from what the successor holds, so that whoever comes again finds it.
func suffixed(want *appsv1.ControllerRevision) string {
	digest := sha256.New()
	digest.Write(want.Data.Raw)
	digest.Write([]byte(want.Annotations[FromUIDAnnotation]))
	return EndIn(want.Name, hex.EncodeToString(digest.Sum(nil))[:8], validation.DNS1123SubdomainMaxLength)
}

// EndIn is a name or a label that ends in a dash and a tail, and has most characters
// at the most. What is cut for it does not end in a separator, which no API server
// takes in front of another one.
func EndIn(text, tail string, most int) string {
	head := text[:min(len(text), most-len(tail)-1)]
	return strings.TrimRight(head, "-._") + "-" + tail
}
