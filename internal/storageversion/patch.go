package storageversion

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
)

// applyManager is the field manager of an apply. It owns no field afterwards, unless
// the object had no managedFields at all.
const applyManager = "crdmigrator"

// patchOf is the patch of an object for a write, which must not be [decision.WriteUpdate].
func patchOf(w decision.Write, kind schema.GroupVersionKind, o metav1.Object) (request.Patch, error) {
	if w != decision.WriteApply && w != decision.WriteStatusApply {
		return request.Patch{Kind: types.MergePatchType, Body: []byte("{}"), Subresource: w.Subresource(), Manager: kube.FieldManager}, nil
	}
	p, err := request.EmptyApply(kind, o)
	p.Subresource, p.Manager = w.Subresource(), applyManager
	return p, err
}
