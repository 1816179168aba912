package fleet

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
)

// Each fix is a function of the names in it: an item calls it with those of its managed resource, and the reason of the item with
// placeholders.

func endPause(o godwit.Object) godwit.Fix {
	return godwit.Do("end the pause, and plan again", kube.RemoveAnnotation(o, annotationPaused))
}

func removeJournal(o godwit.Object) godwit.Fix {
	return godwit.Do("remove the journal, after you have checked the external name", kube.RemoveAnnotation(o, AnnotationJournal))
}

// changeSource is a manifest with the new name, for whatever applies the old one.
func changeSource(manifest string) godwit.Fix {
	return godwit.Do("change the name in the source: " + manifest)
}

func seeObservation(o godwit.Object) godwit.Fix {
	return godwit.Do("see why the provider does not observe it", godwit.Show{Object: o, Output: "yaml"})
}
