package reason

import (
	"testing"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// TestReasonsOfStepsAreThoseOfTheKind: the manager writes the reason of a step into a
// condition, whose reasons the kind documents. Neither package may import the other.
func TestReasonsOfStepsAreThoseOfTheKind(t *testing.T) {
	for kind, step := range map[string]string{
		v1alpha1.ReasonSucceeded:       storageversion.ReasonSucceeded,
		v1alpha1.ReasonNotTrimmed:      storageversion.ReasonNotTrimmed,
		v1alpha1.ReasonSettling:        storageversion.ReasonSettling,
		v1alpha1.ReasonRetrying:        storageversion.ReasonRetrying,
		v1alpha1.ReasonBlocked:         storageversion.ReasonBlocked,
		v1alpha1.ReasonObjectsUnlisted: storageversion.ReasonObjectsUnlisted,
		v1alpha1.ReasonObjectsFailed:   storageversion.ReasonObjectsFailed,
		v1alpha1.ReasonNotConverging:   storageversion.ReasonNotConverging,
		v1alpha1.ReasonPartial:         storageversion.ReasonPartial,
		v1alpha1.ReasonCRDNotFound:     storageversion.ReasonCRDNotFound,
		v1alpha1.ReasonFailed:          storageversion.ReasonFailed,
	} {
		if step != kind {
			t.Errorf("a step has the reason %s, want %s as the kind has it", step, kind)
		}
	}
}
