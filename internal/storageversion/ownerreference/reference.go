package ownerreference

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// Dependent is an object with ownerReferences, in the version in which a scan has listed it.
type Dependent struct {
	Resource schema.GroupVersionResource
	metav1.ObjectMeta
}

// String returns the object as in "configmaps default/settings".
func (d *Dependent) String() string {
	return kube.ResourceArgument(d.Resource.GroupResource()) + " " + walk.Key(d)
}

// Decision says what to do about a reference.
type Decision uint8

const (
	// Repair means that the reference can name the storage version.
	Repair Decision = iota + 1
	// OwnerGone means that no owner has the UID, the name and the namespace of the reference. With a version that is served,
	// the garbage collector would delete the dependent.
	OwnerGone
	// OwnersUnread means that it is not known whether the owner exists.
	OwnersUnread
	// NoTarget means that the API server does not serve the storage version.
	NoTarget
)

// Decide says what to do about a reference of a dependent in a namespace. It is pure.
func (o Owners) Decide(reference metav1.OwnerReference, namespace string, existing Existing) Decision {
	owner := Identity{UID: reference.UID, Namespace: namespace, Name: reference.Name}
	if o.ClusterScoped {
		owner.Namespace = ""
	}
	_, exists := existing[owner]
	switch {
	case existing == nil:
		return OwnersUnread
	case !exists:
		return OwnerGone
	case o.Target == "":
		return NoTarget
	}
	return Repair
}

// Repairable returns the indexes of the references that can name the storage version.
func (o Owners) Repairable(d *Dependent, existing Existing) []int {
	var indexes []int
	for _, i := range o.Outdated(d.OwnerReferences) {
		if o.Decide(d.OwnerReferences[i], d.Namespace, existing) == Repair {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// Operations is the JSON patch that lets references name the storage version. It tests the object and each reference, because
// the list of references may change between the scan and the patch. It does not test the resourceVersion: a change of another
// field is no conflict.
func (o Owners) Operations(d *Dependent, indexes []int) []request.Operation {
	operations := []request.Operation{{Op: "test", Path: "/metadata/uid", Value: d.UID}}
	apiVersion := schema.GroupVersion{Group: o.Kind.Group, Version: o.Target}.String()
	for _, i := range indexes {
		path := fmt.Sprintf("/metadata/ownerReferences/%d", i)
		operations = append(operations,
			request.Operation{Op: "test", Path: path + "/uid", Value: d.OwnerReferences[i].UID},
			request.Operation{Op: "test", Path: path + "/apiVersion", Value: d.OwnerReferences[i].APIVersion},
			request.Operation{Op: "replace", Path: path + "/apiVersion", Value: apiVersion})
	}
	return operations
}
