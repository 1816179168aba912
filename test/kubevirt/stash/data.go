package stash

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// An object is an instance type or a preference as somebody has it in a cluster.
type object struct {
	kind, name, uid string
	generation      int64
	// namespace of the object, empty when it is cluster-wide.
	namespace string
	// matcher is how virtual machines spell the kind: KubeVirt's webhook writes the
	// default in small letters.
	matcher string
	// specs by version, as Go encodes KubeVirt's types.
	specs map[string]string
}

var objects = []object{
	{
		kind: "VirtualMachineInstancetype", name: "web.medium", uid: "0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01", generation: 3,
		namespace: "shop", matcher: "VirtualMachineInstancetype",
		specs: map[string]string{
			"v1alpha1": `{"cpu":{"guest":2,"model":"host-passthrough","dedicatedCPUPlacement":true,"numa":{"guestMappingPassthrough":{}},"isolateEmulatorThread":true},` +
				`"memory":{"guest":"4Gi","hugepages":{"pageSize":"2Mi"}},"gpus":[{"name":"gpu0","deviceName":"nvidia.com/GV100GL_Tesla_V100","virtualGPUOptions":{"display":{"enabled":true,"ramFB":{"enabled":false}}}}],` +
				`"hostDevices":[{"name":"nic0","deviceName":"intel.com/X710","tag":"fast"}],"ioThreadsPolicy":"auto","launchSecurity":{"sev":{"policy":{"encryptedState":true}}}}`,
			"v1alpha2": `{"cpu":{"guest":2,"realtime":{"mask":"0-1,^1"}},"memory":{"guest":"4Gi"},"ioThreadsPolicy":"shared"}`,
			"v1beta1": `{"nodeSelector":{"zone":"a"},"schedulerName":"packer","cpu":{"guest":2,"model":"","dedicatedCPUPlacement":false,"isolateEmulatorThread":false,"maxSockets":4},` +
				`"memory":{"guest":"4Gi","overcommitPercent":15,"maxGuest":"8Gi"},"annotations":{"team":"web"}}`,
		},
	},
	{
		kind: "VirtualMachineClusterInstancetype", name: "u1.medium", uid: "5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102", generation: 1,
		matcher: "virtualmachineclusterinstancetype",
		specs: map[string]string{
			"v1alpha1": `{"cpu":{"guest":1},"memory":{"guest":"4Gi"}}`,
			"v1alpha2": `{"cpu":{"guest":1},"memory":{"guest":"4Gi"}}`,
			// ioThreads came with a later release than the types that we know it by.
			"v1beta1": `{"cpu":{"guest":1},"memory":{"guest":"4Gi"},"ioThreadsPolicy":"supplementalPool","ioThreads":{"supplementalPoolThreadCount":4}}`,
		},
	},
	{
		kind: "VirtualMachinePreference", name: "debian.web", uid: "a8e6a2d1-9f0d-4f6e-b7c4-3a5c1a0ce203", generation: 2,
		namespace: "shop", matcher: "virtualmachinepreference",
		specs: map[string]string{
			"v1alpha1": `{"clock":{"preferredClockOffset":{"utc":{"offsetSeconds":-3600}},"preferredTimer":{"hpet":{"present":false},"pit":{"tickPolicy":"delay"},"rtc":{"tickPolicy":"catchup"},"hyperv":{}}},` +
				`"cpu":{"preferredCPUTopology":"preferThreads"},"devices":{"preferredAutoattachInputDevice":true,"preferredDiskBus":"virtio","preferredDiskBlockSize":{"custom":{"logical":512,"physical":4096}},"preferredInterfaceModel":"virtio","preferredRng":{},"preferredTPM":{}},` +
				`"features":{"preferredAcpi":{},"preferredApic":{"enabled":true,"endOfInterrupt":true},"preferredHyperv":{"relaxed":{},"spinlocks":{"enabled":true,"spinlocks":8191},"vendorid":{"enabled":true,"vendorid":"shop"}},"preferredSmm":{}},` +
				`"firmware":{"preferredUseEfi":true,"preferredUseSecureBoot":true},"machine":{"preferredMachineType":"q35"}}`,
			"v1alpha2": `{"cpu":{"preferredCPUTopology":"preferCores"},"devices":{"preferredInputBus":"usb","preferredInputType":"tablet"},"firmware":{"preferredUseBios":true,"preferredUseBiosSerial":true},"volumes":{"preferredStorageClassName":"fast"}}`,
			"v1beta1": `{"cpu":{"preferredCPUTopology":"spread","spreadOptions":{"across":"SocketsCores","ratio":4},"preferredCPUFeatures":[{"name":"vmx","policy":"require"}]},"firmware":{"preferredEfi":{"persistent":true,"secureBoot":false}},` +
				`"volumes":{"preferredStorageClassName":"fast"},"preferredSubdomain":"web","preferredTerminationGracePeriodSeconds":180,"requirements":{"cpu":{"guest":2},"memory":{"guest":"2Gi"}},"annotations":{"os":"debian"}}`,
		},
	},
	{
		kind: "VirtualMachineClusterPreference", name: "fedora", uid: "e41f7b36-2c8f-4c0f-8d6f-90a1d4c66f04", generation: 12,
		matcher: "", // the default, before the webhook filled it in
		specs: map[string]string{
			"v1alpha1": `{"cpu":{"preferredCPUTopology":"preferSockets"},"devices":{"preferredDiskBus":"virtio"}}`,
			"v1alpha2": `{"devices":{"preferredDiskBus":"virtio","preferredInterfaceModel":"virtio","preferredRng":{}}}`,
			"v1beta1":  `{"cpu":{"preferredCPUTopology":"preferSockets"},"devices":{"preferredDiskBus":"virtio","preferredRng":{}},"features":{"preferredAcpi":{},"preferredSmm":{"enabled":true}},"preferredArchitecture":"amd64"}`,
		},
	},
}

// bare is the spec by itself: of a cluster-wide kind without an apiVersion, of another
// with one.
func (o object) bare() Fixture {
	f := o.fixture("F0", "v1alpha1")
	apiVersion, which := group+"/v1alpha1", "apiVersion"
	if o.namespace == "" {
		apiVersion, which = "", "empty"
	}
	f.Name = strings.Join([]string{"F0", o.kind, which}, "/")
	f.VM = "f0-" + shortName[o.kind]
	f.Data = fmt.Sprintf(`{"apiVersion":%q,"spec":%q}`, apiVersion, base64.StdEncoding.EncodeToString([]byte(o.specs["v1alpha1"])))
	return f
}

func (o object) whole(form, version string, labelled bool) Fixture {
	f := o.fixture(form, version)
	label := "unlabelled"
	if labelled {
		label = "labelled"
	}
	f.Name, f.Labelled = strings.Join([]string{form, o.kind, label}, "/"), labelled
	f.VM = fmt.Sprintf("%s-%s-%s", strings.ToLower(form), shortName[o.kind], label)
	namespace := ""
	if o.namespace != "" {
		namespace = fmt.Sprintf(`"namespace":%q,`, o.namespace)
	}
	f.Data = fmt.Sprintf(
		`{"kind":%q,"apiVersion":%q,"metadata":{"name":%q,%s"uid":%q,"resourceVersion":"4711","generation":%d,"creationTimestamp":"2023-02-14T09:26:53Z"},"spec":%s}`,
		o.kind, group+"/"+version, o.name, namespace, o.uid, o.generation, o.specs[version])
	return f
}

// shortName is what kubectl calls the kinds.
var shortName = map[string]string{
	"VirtualMachineInstancetype":        "vminstancetype",
	"VirtualMachineClusterInstancetype": "vmclusterinstancetype",
	"VirtualMachinePreference":          "vmpref",
	"VirtualMachineClusterPreference":   "vmcpref",
}

func (o object) fixture(form, version string) Fixture {
	return Fixture{Form: form, Version: version, Kind: o.kind, Object: o.name, UID: o.uid, Generation: o.generation, matcher: o.matcher}
}
