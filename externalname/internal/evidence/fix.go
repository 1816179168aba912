package evidence

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
)

// WriteName is the fix of a managed resource without the name of its external resource: pause it, find the external
// resource, and write its name. name is empty if only the user can find it. It deletes nothing.
func WriteName(o godwit.Object, name string, paused bool) godwit.Fix {
	if name == "" {
		name = placeholder.Name
	}
	var way godwit.Way
	if !paused {
		way = append(way, godwit.FixStep{Do: "pause the managed resource, so that the provider creates no other external resource", Actions: []godwit.Action{godwit.Annotate{Object: o, Key: AnnotationPaused, Value: "true"}}})
	}
	return godwit.Fix{append(way,
		godwit.FixStep{Do: "find the external resource in the external system, and see whether others were created"},
		godwit.FixStep{Do: "write its external name", Actions: []godwit.Action{godwit.Annotate{Object: o, Key: AnnotationName, Value: name}}},
		godwit.FixStep{Do: "end the pause", Actions: []godwit.Action{kube.RemoveAnnotation(o, AnnotationPaused)}},
	)}
}

// EndCreation is the fix of a managed resource with a creation whose outcome is not recorded.
func EndCreation(o godwit.Object) godwit.Fix {
	forget := kube.RemoveAnnotation(o, AnnotationPending)
	return godwit.Do("see in the external system whether the resource exists. If it does, write its external name, and remove the annotation of the creation",
		godwit.Annotate{Object: o, Key: AnnotationName, Value: placeholder.Name}, forget).
		Or(godwit.Do("if the resource does not exist, have it created: remove the annotation of the creation", forget))
}

// StopSharing is the fix of a managed resource whose external resource another one has as well. It deletes nothing: the deletion of
// a managed resource deletes its external resource, which the other one keeps.
func StopSharing(o godwit.Object) godwit.Fix {
	observe := godwit.Patch{Object: o, Type: godwit.PatchMerge, Body: `{"spec":{"managementPolicies":["Observe"]}}`}
	return godwit.Do("compare them. If another one is to manage the external resource, let this one only observe it", observe).
		Or(godwit.Do("correct the name of the one that is to have another external resource, where its manifest is")).
		Or(godwit.Do("leave them as they are, if the provider says that several managed resources of the kind may share an external resource"))
}
