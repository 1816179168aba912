package fleet

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/kube"
)

// Each fix is a function of the names in it: an item calls it with those of its managed resource, and the reason of the item with
// placeholders.

func endPause(o godwit.Object) godwit.Fix {
	return godwit.Do("end the pause, and plan again", kube.RemoveAnnotation(o, managed.AnnotationPaused))
}

func removeJournal(o godwit.Object) godwit.Fix {
	return godwit.Do("remove the journal, after you have checked the external name", kube.RemoveAnnotation(o, AnnotationJournal))
}

// changeSource is a manifest with the new name, for whatever applies the old one.
func changeSource(manifest string) godwit.Fix {
	return godwit.Do("change the name in the source: " + manifest)
}

func chooseIdentity() godwit.Fix {
	return godwit.Do("if one of these fields identifies the external resource, choose it: --identity=FIELD").
		Or(godwit.Do("let the provider write a field to status.atProvider that the external system alone decides, such as an ID"))
}

// accountFor is the fix for a second external resource.
func accountFor(o godwit.Object) godwit.Fix {
	return godwit.Do("look at both in the external system, and delete there the one that nothing needs").
		Then("remove the journal", kube.RemoveAnnotation(o, AnnotationJournal))
}

func seeObservation(o godwit.Object) godwit.Fix {
	return godwit.Do("see why the provider does not observe it", godwit.Show{Object: o, Output: "yaml"})
}
