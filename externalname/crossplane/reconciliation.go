package crossplane

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// reconciliation is one pass over one object: Observe, and at most one of Create, Update and
// Delete after it.
type reconciliation[M resource.Managed, K, X any] struct {
	Resource[M, K, X]

	journal  journal
	recorder event.Recorder
	claims   *claims
	drift    *announcer
	meter    *meter
	external External[M, K, X]

	// Results of Observe, for Create, Update or Delete.
	key       K
	name      string
	observed  X
	lifecycle Lifecycle
	exists    bool

	// gotten caches the external resources that Get returned, by name: a pass reads each one once.
	gotten map[string]gotten[K, X]
}

// gotten is an external resource with its key.
type gotten[K, X any] struct {
	key      K
	resource X
}
