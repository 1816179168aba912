package storageversion

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
)

// applyManager is the field manager of an apply. It owns no field afterwards, unless
// the object had no managedFields at all.
const applyManager = "crdmigrator"

// patchOf is the patch of an object for a write, which must not be [decision.WriteUpdate]. It fails once the object has another
// resourceVersion: what another client has written since the list, through an API server with a newer schema, may have fields that
// the server of the patch does not know yet, and would prune.
func patchOf(w decision.Write, kind schema.GroupVersionKind, o metav1.Object) (request.Patch, error) {
	if w != decision.WriteApply && w != decision.WriteStatusApply {
		return request.EmptyPatch(o, w.Subresource())
	}
	p, err := request.EmptyApply(kind, o)
	p.Subresource, p.Manager = w.Subresource(), applyManager
	return p, err
}
