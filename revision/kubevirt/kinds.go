package kubevirt

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
)

// Group is the API group of instance types and preferences.
const Group = "instancetype.kubevirt.io"

// The versions that KubeVirt has released.
const (
	v1alpha1 = "v1alpha1"
	v1alpha2 = "v1alpha2"
	v1beta1  = "v1beta1"
)

// A kind is one of the four that KubeVirt stores.
type kind struct {
	name string
	// preference, or else instance type: what a VirtualMachine expects.
	preference bool
}

// kinds by the singular of their resources, which is how KubeVirt compares them.
var kinds = map[string]kind{
	"virtualmachineinstancetype":        {name: "VirtualMachineInstancetype"},
	"virtualmachineclusterinstancetype": {name: "VirtualMachineClusterInstancetype"},
	"virtualmachinepreference":          {name: "VirtualMachinePreference", preference: true},
	"virtualmachineclusterpreference":   {name: "VirtualMachineClusterPreference", preference: true},
}

// kindOf reads a kind as a VirtualMachine may spell it: in any case, and by the
// plural as well.
func kindOf(spelled string) (kind, bool) {
	k, known := kinds[strings.TrimSuffix(strings.ToLower(spelled), "s")]
	return k, known
}

// role is what a VirtualMachine uses the kind as.
func (k kind) role() string {
	if k.preference {
		return "a preference"
	}
	return "an instance type"
}

// resource is the resource of the kind.
func (k kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: Group, Resource: strings.ToLower(k.name) + "s"}
}

// canonicalKind is the canonical name of the kind that a reference names. None is the
// cluster-wide one of the reference's role. A kind that KubeVirt does not know stays
// as it is, to be refused when the revision is read.
func canonicalKind(spelled string, preference bool) string {
	if k, known := kindOf(spelled); known {
		return k.name
	}
	if spelled != "" {
		return spelled
	}
	if preference {
		return "VirtualMachineClusterPreference"
	}
	return "VirtualMachineClusterInstancetype"
}

// owners are the kinds that KubeVirt makes revisions for.
var owners = []decision.OwnerType{
	{GroupVersionKind: schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}, Resource: "virtualmachines", Versions: []string{"v1"}},
	{GroupVersionKind: schema.GroupVersionKind{Group: "snapshot.kubevirt.io", Version: v1beta1, Kind: "VirtualMachineSnapshot"}, Resource: "virtualmachinesnapshots", Versions: []string{v1beta1, v1alpha1}},
}
