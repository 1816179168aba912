package audit

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
)

// Reasons has the reasons that only an audit reports. It reports some of package fleet as well: NameLost, CreateIncomplete,
// Duplicate, JournalUnreadable and NewerFormat.
var Reasons godwit.Catalog

// Reasons of a [Finding].
var (
	ReasonCreatedTwice = Reasons.Declare(godwit.Reason{
		Name:    "CreatedTwice",
		Meaning: "The provider has created an external resource several times for one managed resource. An earlier one may exist without a managed resource, unless it was deleted in the external system.",
		Fix:     compareCreations(placeholder.Object()),
	})
	ReasonNameContested = Reasons.Declare(godwit.Reason{
		Name: "NameContested", UserAction: true,
		Meaning: "The provider and the source of the manifest write different external names in turns. Each time, the provider may create an external resource, or manage another one.",
		Fix:     changeSource(placeholder.Object()),
	})
	ReasonMaybeShared = Reasons.Declare(godwit.Reason{
		Name:    "MaybeShared",
		Meaning: "Several managed resources may have one external resource: they have the same external name or the same identifier in status.atProvider, and differ in fields that may or may not identify it, or all but one are paused.",
		Fix:     evidence.StopSharing(placeholder.Object()),
	})
	ReasonPausedLeftover = Reasons.Declare(godwit.Reason{
		Name:    "PausedLeftover",
		Meaning: "The managed resource is paused, and what paused it seems to be over. The provider corrects no drift of the external resource, and does not delete it with the managed resource.",
		Fix:     endPause(placeholder.Object()).Or(keepExternal(placeholder.Object())),
	})
	ReasonRenamingInterrupted = Reasons.Declare(godwit.Reason{
		Name:    "RenamingInterrupted",
		Meaning: "`godwit externalname run` has begun to rename the managed resource, and has not ended: it runs, or it was interrupted.",
		Fix:     endRenaming(placeholder.Object()),
	})
	ReasonHandoverReturned = Reasons.Declare(godwit.Reason{
		Name:    "HandoverReturned",
		Meaning: "The managed resource is the replacement in a handover that was undone or rolled back. It is paused, and may only observe.",
		Fix:     endReturned(placeholder.Object()),
	})
	ReasonHandoverInterrupted = Reasons.Declare(godwit.Reason{
		Name:    "HandoverInterrupted",
		Meaning: "`godwit externalname restore` has begun to hand the external resource over to a replacement, and has not ended: it runs, or it was interrupted. The original may be paused, and one of the two may only observe.",
		Fix:     endHandover(placeholder.Object()),
	})
)

func compareCreations(o godwit.Object) godwit.Fix {
	return godwit.Do("see in the external system which resources fit the managed resource, and which of them has its external name", godwit.Show{Object: o, Output: "yaml"}).
		Then("if the name is of the wrong one, write the right one", godwit.Annotate{Object: o, Key: evidence.AnnotationName, Value: placeholder.Name})
}

func changeSource(o godwit.Object) godwit.Fix {
	return godwit.Do("pause the managed resource, so that nothing is created meanwhile", godwit.Annotate{Object: o, Key: evidence.AnnotationPaused, Value: "true"}).
		Then("find the right external resource in the external system").
		Then("write its external name in the source, or remove the name from the source if the provider makes it").
		Then("end the pause", kube.RemoveAnnotation(o, evidence.AnnotationPaused))
}

func endPause(o godwit.Object) godwit.Fix {
	return godwit.Do("end the pause, after you have checked the external name", kube.RemoveAnnotation(o, evidence.AnnotationPaused))
}

// keepExternal is the fix of a managed resource that is being deleted: the end of its pause deletes the external resource, unless it
// only observes.
func keepExternal(o godwit.Object) godwit.Fix {
	observe := godwit.Patch{Object: o, Type: godwit.PatchMerge, Body: `{"spec":{"managementPolicies":["Observe"]}}`}
	return godwit.Do("to keep the external resource, let the managed resource only observe it, and end the pause", observe, kube.RemoveAnnotation(o, evidence.AnnotationPaused)).
		Or(godwit.Do("if the external resource is to go with the managed resource, end the pause"))
}

func endRenaming(o godwit.Object) godwit.Fix {
	return godwit.Do("if no other client runs it, run the same `godwit externalname run` again, which resumes").
		Or(godwit.Do("restore the old names of all that were renamed", godwit.RollBackNames{Resource: o.Resource, Namespace: o.Namespace}))
}

// endReturned is the fix for a replacement that has no external resource.
func endReturned(o godwit.Object) godwit.Fix {
	return godwit.Do("restore again, if it is to have the external resource").
		Or(godwit.Do("otherwise end its pause. It only observes, so that nothing else is lost with it", kube.RemoveAnnotation(o, evidence.AnnotationPaused)))
}

// endHandover is the fix for a replacement.
func endHandover(o godwit.Object) godwit.Fix {
	return godwit.Do("if no other client runs it, run the same `godwit externalname restore` again, which resumes").
		Or(godwit.Do("return the external resources of all that were handed over", godwit.RollBackNames{Resource: o.Resource, Namespace: o.Namespace}))
}
