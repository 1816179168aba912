package kubevirt

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/revision/decision"
)

// Convert converts an object from v1alpha1 or v1alpha2 to v1beta1, as KubeVirt v1.6.3
// does. An object that is already at the version is returned as it is. A field that the
// old version does not know but v1beta1 does is left out, and among the losses: it
// never had an effect, and must not get one now.
func (Family) Convert(s decision.StoredObject, version string) (decision.StoredObject, error) {
	if s.Version == version {
		return s, nil
	}
	if version != v1beta1 || s.Version != v1alpha1 && s.Version != v1alpha2 {
		return decision.StoredObject{}, &decision.ConversionError{From: s.Version, To: version}
	}
	name, _ := s.Object["kind"].(string)
	k, known := kindOf(name)
	if !known {
		return decision.StoredObject{}, fmt.Errorf("convert from %s to %s: %q is not a kind of this family", s.Version, version, name)
	}
	converted := convertedData.of(s.Data, func() conversion { return convert(s, k, version) })
	if converted.err != nil {
		return decision.StoredObject{}, fmt.Errorf("convert %s from %s to %s: %w", s.Resource, s.Version, version, converted.err)
	}
	s.Version, s.Object, s.Data = version, converted.object, nil
	s.Losses = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Losses, converted.unknown))))
	return s, nil
}

func convert(s decision.StoredObject, k kind, version string) conversion {
	object := runtime.DeepCopyJSON(s.Object)
	from, to := shapes().Kinds[s.Version][k.name], shapes().Kinds[version][k.name]
	leaveDormant(object, from, to)
	if k.preference {
		convertPreference(object)
	} else {
		convertInstancetype(object)
	}
	object["apiVersion"] = Group + "/" + version
	return conversion{object, checkObject(version, k, object)}
}

// convertInstancetype writes what KubeVirt's types always write: they have no field
// of these that could be absent.
func convertInstancetype(object map[string]any) {
	spec := child(object, "spec")
	memory := child(spec, "memory")
	fill(memory, "guest", "0")
	cpu := child(spec, "cpu")
	fill(cpu, "guest", int64(0))
	fill(cpu, "model", "")
	fill(cpu, "dedicatedCPUPlacement", false)
	fill(cpu, "isolateEmulatorThread", false)
}

// convertPreference takes away the empty topology, which meant none, and at v1beta1
// would be one.
func convertPreference(object map[string]any) {
	spec, _ := child(object, "spec")["cpu"].(map[string]any)
	if topology, ok := spec["preferredCPUTopology"]; ok && (topology == "" || topology == nil) {
		delete(spec, "preferredCPUTopology")
	}
}

// child is an object within another, made where there is none.
func child(of map[string]any, key string) map[string]any {
	if there, ok := of[key].(map[string]any); ok {
		return there
	}
	made := map[string]any{}
	of[key] = made
	return made
}

func fill(object map[string]any, key string, value any) {
	if object[key] == nil {
		object[key] = value
	}
}

// leaveDormant removes the fields that shape from does not have, and shape to does.
func leaveDormant(object map[string]any, from, to string) {
	if from == to {
		return
	}
	before, after := shapes().Shapes[from], shapes().Shapes[to]
	for key, value := range object {
		_, known := before[key]
		_, wakes := after[key]
		if !known && wakes {
			delete(object, key)
			continue
		}
		if within, ok := value.(map[string]any); ok && known {
			leaveDormant(within, before[key], after[key])
		}
	}
}
