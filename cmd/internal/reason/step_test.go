package reason

import (
	"testing"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// TestReasonsOfStepsAreThoseOfTheKind: the manager writes the reason of a step into a
// condition, whose reasons the kind documents. Neither package may import the other.
func TestReasonsOfStepsAreThoseOfTheKind(t *testing.T) {
	for kind, step := range map[string]string{
		v1alpha1.ReasonSucceeded:       crdmigrator.ReasonSucceeded,
		v1alpha1.ReasonNotTrimmed:      crdmigrator.ReasonNotTrimmed,
		v1alpha1.ReasonSettling:        crdmigrator.ReasonSettling,
		v1alpha1.ReasonRetrying:        crdmigrator.ReasonRetrying,
		v1alpha1.ReasonBlocked:         crdmigrator.ReasonBlocked,
		v1alpha1.ReasonObjectsUnlisted: crdmigrator.ReasonObjectsUnlisted,
		v1alpha1.ReasonObjectsFailed:   crdmigrator.ReasonObjectsFailed,
		v1alpha1.ReasonNotConverging:   crdmigrator.ReasonNotConverging,
		v1alpha1.ReasonPartial:         crdmigrator.ReasonPartial,
		v1alpha1.ReasonCRDNotFound:     crdmigrator.ReasonCRDNotFound,
		v1alpha1.ReasonFailed:          crdmigrator.ReasonFailed,
	} {
		if step != kind {
			t.Errorf("a step has the reason %s, want %s as the kind has it", step, kind)
		}
	}
}
