package fleet

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
)

// Unfinished returns the new name of a renaming that has not ended, or empty. It returns a finding if the journal of the managed
// resource can't be read, or has a second external resource.
func Unfinished(kind Kind, o *unstructured.Unstructured) (to string, problem *godwit.Finding) {
	m := managed.Of(o)
	j, err := readJournal(m)
	i := Item{Namespace: m.GetNamespace(), Name: m.GetName()}
	switch {
	case err != nil:
		i.Reason, i.Message = unreadable(err)
	case j != nil && j.Phase == phaseDoubled:
		i.Reason, i.Message = ReasonSecondResource, j.doubled()
	default:
		return j.unfinished(), nil
	}
	return "", &godwit.Finding{Reason: i.Reason, Message: i.Message, Fix: fixOf(kind, i, Fact{})}
}

// Managed reports whether an object is a managed resource, and not a claim or a composite.
func Managed(o *unstructured.Unstructured) bool { return managed.Of(o).IsManaged() }
