package kubevirt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/godwit-dev/godwit/revision/decision"
)

// Compose is the revision that KubeVirt ≥ 1.3 would make of the object for the owner
// of old: <owner>-<object>-<version>-<uid>-<generation>, with five labels. A name of
// more than 253 characters and a label of more than 63, which no API server takes, end
// in a hash instead of the rest. Data that old has already are used as they are.
//
// It fails where it can't be known whose object it is: a SpecRevision whose name is
// not one of KubeVirt's, and that has no labels.
func (Family) Compose(old *appsv1.ControllerRevision, s decision.StoredObject) (*appsv1.ControllerRevision, error) {
	fail := func(err error) (*appsv1.ControllerRevision, error) {
		return nil, fmt.Errorf("name the replacement of ControllerRevision %s/%s: %w", old.Namespace, old.Name, err)
	}
	of, err := identityOf(old, s)
	if err != nil {
		return fail(err)
	}
	owner, err := ownerPrefix(old, of.name)
	if err != nil {
		return fail(err)
	}
	data, err := dataOf(s)
	if err != nil {
		return fail(err)
	}
	kind, _ := s.Object["kind"].(string)
	name := fit(strings.Join([]string{owner, of.name, s.Version, of.uid, of.generation}, "-"), validation.DNS1123SubdomainMaxLength)
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		return fail(fmt.Errorf("its object's name, UID and generation make the name %q: %s", name, strings.Join(why, "; ")))
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				labelGeneration: of.generation,
				labelKind:       kind,
				labelName:       fit(of.name, validation.LabelValueMaxLength),
				labelUID:        fit(of.uid, validation.LabelValueMaxLength),
				labelVersion:    s.Version,
			},
		},
		Data: runtime.RawExtension{Raw: data},
	}, nil
}

// identityOf trusts the object first.
func identityOf(old *appsv1.ControllerRevision, s decision.StoredObject) (identity, error) {
	of, outside := identityIn(s.Object), identify(old, "")
	of.name, of.uid = cmp.Or(of.name, outside.name), cmp.Or(of.uid, outside.uid)
	of.generation = cmp.Or(of.generation, outside.generation)
	if of.generation == "" && s.Form == FormObject {
		of.generation = "0" // what Go leaves out of JSON
	}
	var missing []string
	for _, part := range []struct{ label, is string }{{labelName, of.name}, {labelUID, of.uid}, {labelGeneration, of.generation}} {
		if part.is == "" {
			missing = append(missing, part.label)
		}
	}
	if len(missing) > 0 {
		return identity{}, &decision.MissingLabelsError{Labels: missing}
	}
	return of, nil
}

// ownerPrefix is the controller's name. A revision without one keeps what its name begins with.
func ownerPrefix(old *appsv1.ControllerRevision, object string) (string, error) {
	if owner := ownerName(old); owner != "" {
		return owner, nil
	}
	if part := nameTail.FindStringSubmatch(old.Name); part != nil {
		head := part[1]
		if version := old.Labels[labelVersion]; version != "" {
			head = strings.TrimSuffix(head, "-"+version)
		}
		if owner, ok := strings.CutSuffix(head, "-"+object); ok && owner != "" {
			return owner, nil
		}
	}
	return "", decision.ErrNoOwner
}

// discarded are the metadata that KubeVirt takes off an object before it stores it.
var discarded = []string{"labels", "annotations", "finalizers", "ownerReferences", "managedFields"}

// withoutDiscarded is an object as KubeVirt stores it.
func withoutDiscarded(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	for _, key := range discarded {
		delete(metadata, key)
	}
	object["metadata"] = metadata
	return object
}

// dataOf is the object as JSON with sorted keys, or the very bytes that it was decoded from.
func dataOf(s decision.StoredObject) ([]byte, error) {
	if len(s.Data) > 0 {
		return s.Data, nil
	}
	data, err := json.Marshal(withoutDiscarded(s.Object))
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	return data, nil
}

// fit cuts text to a length and ends it in a hash of the whole, so that two that
// begin alike stay apart.
func fit(text string, most int) string {
	if len(text) <= most {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return decision.WithSuffix(text, hex.EncodeToString(sum[:])[:8], most)
}
