package kubevirt

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The labels of a revision, which KubeVirt has written since v1.0.1.
const (
	labelGeneration = Group + "/object-generation"
	labelKind       = Group + "/object-kind"
	labelName       = Group + "/object-name"
	labelUID        = Group + "/object-uid"
	labelVersion    = Group + "/object-version"
)

func isLabelled(r *appsv1.ControllerRevision) bool {
	for _, label := range []string{labelGeneration, labelKind, labelName, labelUID, labelVersion} {
		if _, ok := r.Labels[label]; ok {
			return true
		}
	}
	return false
}

// nameTail is the end of a revision's name: <owner>-<object>[-<version>]-<uid>-<generation>.
// KubeVirt writes the version since v1.3.
var nameTail = regexp.MustCompile(`^(.+)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([0-9]+)$`)

// An identity is which object is stored. What is not known is empty.
type identity struct {
	name, uid, generation string
}

// identify tells by a revision's name which object it was made of, and where the
// name does not say, by its labels. expectedName is the object's name in a reference: it
// may have been changed since, so that the revision's name comes first.
func identify(r *appsv1.ControllerRevision, expectedName string) identity {
	var named identity
	if part := nameTail.FindStringSubmatch(r.Name); part != nil {
		named.uid, named.generation = part[2], part[3]
		named.name = objectName(part[1], ownerName(r), expectedName)
	}
	return identity{
		name:       cmp.Or(named.name, expectedName, r.Labels[labelName]),
		uid:        cmp.Or(named.uid, r.Labels[labelUID]),
		generation: cmp.Or(named.generation, r.Labels[labelGeneration]),
	}
}

// objectName cuts the owner's name off <owner>-<object>. Without an owner, what a
// reference says must be how it ends.
func objectName(head, owner, expectedName string) string {
	if name, ok := strings.CutPrefix(head, owner+"-"); ok && owner != "" {
		return name
	}
	if expectedName != "" && strings.HasSuffix(head, "-"+expectedName) {
		return expectedName
	}
	return ""
}

func ownerName(r *appsv1.ControllerRevision) string {
	if owner := metav1.GetControllerOf(r); owner != nil {
		return owner.Name
	}
	return ""
}

// metadata has what is known and nothing else.
func (i identity) metadata() map[string]any {
	m := map[string]any{}
	if i.name != "" {
		m["name"] = i.name
	}
	if i.uid != "" {
		m["uid"] = i.uid
	}
	if generation, err := strconv.ParseInt(i.generation, 10, 64); err == nil {
		m["generation"] = generation
	}
	return m
}

// identityIn is the identity that an object has by its own metadata.
func identityIn(object map[string]any) identity {
	metadata, _ := object["metadata"].(map[string]any)
	var i identity
	i.name, _ = metadata["name"].(string)
	i.uid, _ = metadata["uid"].(string)
	switch generation := metadata["generation"].(type) {
	case int64:
		i.generation = strconv.FormatInt(generation, 10)
	case json.Number:
		i.generation = generation.String()
	}
	return i
}
