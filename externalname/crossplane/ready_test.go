package crossplane_test

import (
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/ready"
)

// Package ready can't import this one, and reads what it writes.
func TestReadyReadsTheseNames(t *testing.T) {
	for got, want := range map[string]string{
		ready.AnnotationBoundName:    crossplane.AnnotationBoundName,
		ready.AnnotationExternalName: meta.AnnotationKeyExternalName,
		ready.AnnotationPaused:       meta.AnnotationKeyReconciliationPaused,
		ready.TypeDrift:              crossplane.TypeDrift,
		ready.TypeUniqueName:         crossplane.TypeUniqueName,
	} {
		if got != want {
			t.Errorf("package ready reads %q, this package writes %q", got, want)
		}
	}
}
