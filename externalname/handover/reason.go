package handover

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
)

// Reasons has the reasons that only a handover reports. It reports some of package fleet as well.
var Reasons godwit.Catalog

// Reasons of a managed resource that is not handed over.
var (
	ReasonNoReplacement = Reasons.Declare(godwit.Reason{
		Name: "NoReplacement", UserAction: true,
		Meaning: "The cluster has no managed resource of the new kind with the namespace and the name of the replacement.",
		Fix:     godwit.Do("create it from its manifest, with the annotation crossplane.io/paused: \"true\", and restore again"),
	})
	ReasonNoOriginal = Reasons.Declare(godwit.Reason{
		Name: "NoOriginal", UserAction: true,
		Meaning: "The original does not exist any more, so that nothing proves that the replacement has the same external resource.",
		Fix:     bind(placeholder.Object(), placeholder.Name),
	})
	ReasonNoPolicies = Reasons.Declare(godwit.Reason{
		Name: "NoPolicies", UserAction: true,
		Meaning: "The kind has no spec.managementPolicies, or its provider runs without them, so that it can't be kept from writing.",
		Fix:     godwit.Do("use a release of the provider whose kinds have spec.managementPolicies, and run it without --enable-management-policies=false"),
	})
	ReasonPoliciesApplied = Reasons.Declare(godwit.Reason{
		Name: "PoliciesApplied", UserAction: true,
		Meaning: "A GitOps tool or a Composition applies spec.managementPolicies or the pause from a source, and would write over the steps of the handover.",
		Fix: godwit.Do("for an original: let the source leave out spec.managementPolicies, and restore again").
			Or(godwit.Do("for a replacement: stop the source, create the replacement with kubectl, paused, and restore again. Let the source apply it after the handover, without the pause")),
	})
	ReasonOwnResource = Reasons.Declare(godwit.Reason{
		Name: "OwnResource", UserAction: true,
		Meaning: "The replacement has created an external resource of its own, or has begun to: there may be two.",
		Fix:     startAnew(placeholder.Object()),
	})
	ReasonNothingFound = Reasons.Declare(godwit.Reason{
		Name: "NothingFound", UserAction: true,
		Meaning: "The provider of the replacement finds no external resource under the name, while it could only observe. The replacement is paused again, and nothing is created.",
		Fix:     godwit.Do("compare spec.forProvider and the ProviderConfig of the two: they say where the external resource is"),
	})
	ReasonOtherResource = Reasons.Declare(godwit.Reason{
		Name: "OtherResource", UserAction: true,
		Meaning: "Under the name, the provider of the replacement finds another external resource: status.atProvider differs. The replacement is paused again.",
		Fix: godwit.Do("compare spec.forProvider and the ProviderConfig of the two").
			Or(godwit.Do("if the fields in the message do not identify the external resource, name the ones that do with --identity, or exclude these with --volatile")),
	})
	ReasonNothingToCompare = Reasons.Declare(godwit.Reason{
		Name: "NothingToCompare", UserAction: true,
		Meaning: "Nothing proves that the two have the same external resource: status.atProvider of the two kinds has no field in common that identifies it, or one of them was not observed.",
		Fix:     godwit.Do("name a field that the external system alone decides, such as an ID, and that both kinds have: --identity=FIELD"),
	})
	ReasonNotReconciled = Reasons.Declare(godwit.Reason{
		Name: "ReplacementNotReconciled", UserAction: true,
		Meaning: "The provider of the replacement did not report success in time. The replacement is paused again.",
		Fix:     godwit.Do("see the message for the error of the provider, and whether it serves the new kind. Two managed resources can't write one connection secret: give the replacement another one"),
	})
	ReasonUnreadable = Reasons.Declare(godwit.Reason{
		Name: "HandoverUnreadable", UserAction: true,
		Meaning: "The annotation of a handover can't be read. Another client has changed it.",
		Fix:     removeJournal(placeholder.Object()),
	})
	ReasonOtherHandover = Reasons.Declare(godwit.Reason{
		Name: "OtherHandover", UserAction: true,
		Meaning: "The managed resource is in another handover than the saved names say, or in one of the other direction.",
		Fix:     endOther(placeholder.Object()),
	})
	ReasonReplacementGone = Reasons.Declare(godwit.Reason{
		Name: "ReplacementGone", UserAction: true,
		Meaning: "The original was handed over, and its replacement does not exist any more: maybe it was deleted with the external resource. The original only observes, and nothing manages the external resource.",
		Fix:     returnTo(placeholder.Object()),
	})
	ReasonRenamingUnfinished = Reasons.Declare(godwit.Reason{
		Name: "RenamingUnfinished", UserAction: true,
		Meaning: "A renaming of the managed resource has not ended, and would give it back its management policies during the handover.",
		Fix:     godwit.Do("end the renaming: run the same `godwit externalname run` again, or `godwit externalname rollback`"),
	})
	ReasonOnlyObserves = Reasons.Declare(godwit.Reason{
		Name: "OnlyObserves", UserAction: true,
		Meaning: "spec.managementPolicies of the original or of the replacement allow nothing but Observe, so that there is nothing to hand over, or nothing would manage the external resource afterwards.",
		Fix:     godwit.Do("for a replacement: write the policies that it is to have, while it is paused").Or(godwit.Do("for an original that only observes: write the external name to the replacement, and keep its policies [Observe], too")),
	})
	ReasonMayDelete = Reasons.Declare(godwit.Reason{
		Name: "MayDelete", UserAction: true,
		Meaning: "The deletion of the original leaves its external resource, by spec.deletionPolicy or spec.managementPolicies, and that of the replacement would delete it.",
		Fix:     godwit.Do(`write spec.managementPolicies without Delete to the replacement: ["Observe","Create","Update","LateInitialize"]`).Or(godwit.Do("write the policies of the replacement to the original, if the external resource may be deleted")),
	})
	ReasonOperationRuns = Reasons.Declare(godwit.Reason{
		Name: "OperationRuns", UserAction: true,
		Meaning: "The provider has begun an operation on the external resource, or a creation, that has not ended. A pause does not stop it.",
		Fix:     godwit.Do("wait until the operation ends, and run again. If it hangs, see the conditions and the annotations of the managed resource"),
	})
	ReasonReturning = Reasons.Declare(godwit.Reason{
		Name: "Returning", UserAction: true,
		Meaning: "A rollback of the handover has begun and not ended.",
		Fix:     godwit.Do("run `godwit externalname rollback` again for the kind of the replacement"),
	})
	ReasonLastOne = Reasons.Declare(godwit.Reason{
		Name: "LastOne", UserAction: true,
		Meaning: "The original was deleted, so that only the replacement has the external resource.",
		Fix:     keepLast(placeholder.Object()),
	})
)

// bind is the fix of a replacement without an original.
func bind(replacement godwit.Object, name string) godwit.Fix {
	return godwit.Do("see in the external system whether the external resource exists. If it does, write its name to the replacement, and end the pause",
		godwit.Annotate{Object: replacement, Key: managed.AnnotationName, Value: name}, kube.RemoveAnnotation(replacement, managed.AnnotationPaused))
}

// startAnew is the fix of a replacement that has an external resource of its own.
func startAnew(replacement godwit.Object) godwit.Fix {
	return godwit.Do("see in the external system what the replacement has created, and delete there what nothing needs").
		Then("let the replacement only observe, so that its deletion deletes nothing, and delete it",
			godwit.Patch{Object: replacement, Type: godwit.PatchMerge, Body: `{"metadata":{"annotations":{"` + managed.AnnotationPaused + `":null}},"spec":{"managementPolicies":["Observe"]}}`},
			godwit.Delete{Object: replacement}).
		Then("create it again from its manifest, paused, and restore again")
}

// endOther is the fix of a managed resource that is in another handover.
func endOther(o godwit.Object) godwit.Fix {
	return godwit.Do("if that handover is the wrong one, roll it back: `godwit externalname rollback` with the CRD of its replacement").
		Or(godwit.Do("if it has ended, remove its annotation, and restore again", kube.RemoveAnnotation(o, AnnotationHandover)))
}

// returnTo is the fix of an original whose replacement does not exist.
func returnTo(o godwit.Object) godwit.Fix {
	return godwit.Do("if the external resource is to stay, have the original manage it again", godwit.RollBackNames{Resource: o.Resource, Namespace: o.Namespace}).
		Or(godwit.Do("otherwise delete the original, which deletes nothing else", godwit.Delete{Object: o}))
}

// keepLast is the fix of a replacement whose original does not exist.
func keepLast(o godwit.Object) godwit.Fix {
	return godwit.Do("keep the replacement. If it is paused, and the external system has the external resource, end the rollback", kube.RemoveAnnotation(o, AnnotationHandover), kube.RemoveAnnotation(o, managed.AnnotationPaused)).
		Or(godwit.Do("to return to the old kind, end this handover, and hand the external resource over to an original that you create again, paused", kube.RemoveAnnotation(o, AnnotationHandover)))
}

func removeJournal(o godwit.Object) godwit.Fix {
	return godwit.Do("see which of the two managed resources may write, by their pauses and spec.managementPolicies").
		Then("remove the annotation", kube.RemoveAnnotation(o, AnnotationHandover))
}
