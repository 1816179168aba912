package kubevirt_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/revision/reference"
)

// KubeVirt v0.56 stored the spec of an instance type alone. The reference of the VirtualMachine
// tells its kind, and the name of the revision tells whose it is.
func ExampleFamily() {
	controller := true
	old := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "db-small-6fc1a5c4-2b8e-4b8a-9a57-0d6f2f3f9c11-1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "db", Controller: &controller}},
		},
		Data: runtime.RawExtension{Raw: []byte(
			`{"apiVersion":"","spec":"eyJjcHUiOnsiZ3Vlc3QiOjJ9LCJtZW1vcnkiOnsiZ3Vlc3QiOiI0R2kifX0="}`)},
	}
	var family decision.Family = kubevirt.Family{}
	stored, err := family.Decode(old, reference.ExpectedType{Kind: "VirtualMachineInstancetype", Name: "small"})
	if err != nil {
		fmt.Println(err)
		return
	}
	stored, err = family.Convert(stored, "v1beta1")
	if err != nil {
		fmt.Println(err)
		return
	}
	replacement, err := family.Compose(old, stored)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(replacement.Name)
	fmt.Println(stored.Object["spec"])
	// Output:
	// db-small-v1beta1-6fc1a5c4-2b8e-4b8a-9a57-0d6f2f3f9c11-1
	// map[cpu:map[dedicatedCPUPlacement:false guest:2 isolateEmulatorThread:false model:] memory:map[guest:4Gi]]
}
