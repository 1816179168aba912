package crossplane

import (
	"context"
	"iter"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// External has the functions that the author of a provider writes for one kind. M is the managed resource, K the key
// that identifies an external resource, and X the external resource as the external system returns it.
//
// Every function gets a copy of the managed resource, so it can't change the spec or the annotations by accident.
type External[M resource.Managed, K, X any] struct {
	// Get reads the external resource that has the key, and nothing else: it never reads
	// a spec. It returns [ErrNotFound], [ErrParentNotFound] or a
	// [MultipleMatchesError] where they apply.
	Get func(ctx context.Context, key K) (X, error)
	// Create creates the external resource. It returns [ErrAlreadyExists] if the resource exists, and never adopts it.
	// It sets the mark that Ours checks, such as a tag with [Token].
	Create func(ctx context.Context, mg M) (Created[K], error)
	// Update changes the external resource to match the spec. It returns the key, which may have changed in mutable
	// segments.
	Update func(ctx context.Context, mg M, key K, observed X) (K, error)
	// Delete begins the deletion of the external resource. It may return [ErrNotFound].
	Delete func(ctx context.Context, key K) error
	// Mirror writes the external resource to status.atProvider, including every field of spec.forProvider. Its other
	// changes are dropped. A status that the API server refuses, such as one with an empty required field, is an event and
	// the condition Synced.
	Mirror func(mg M, observed X)
	// Diff returns how the external resource differs from the spec.
	Diff func(mg M, observed X) []Difference

	// MirrorKey writes the key to status.atProvider, after Mirror. A kind needs it if the external system does not return
	// the key with the external resource.
	MirrorKey func(mg M, key K)
	// Lifecycle returns the state of the external resource. Without it, a resource that
	// exists is Ready.
	Lifecycle func(observed X) Lifecycle
	// Connection returns what is published as the connection secret.
	Connection func(observed X) managed.ConnectionDetails
	// Find looks external resources up by the spec, for objects whose name is missing or
	// incomplete, and after an interrupted creation.
	Find func(ctx context.Context, mg M) ([]K, error)
	// List lists the keys of all external resources that the connection can see, in any order. It uses only LIST
	// requests of the external system, page by page if possible, and ends after an error. The reconciler never calls
	// it; exports and other tools do, and then read each resource with Get.
	List func(ctx context.Context) iter.Seq2[K, error]
	// Ours reports whether the external resource comes from the last creation for this object: whether it has the mark
	// that Create sets. Without Ours, the user must find out the outcome of an interrupted creation. The object always
	// has a [Token]: if no creation has left one, it is a token that no resource has, so that an empty mark proves nothing.
	Ours func(ctx context.Context, mg M, observed X) (bool, error)
	// Operation follows creations that are asynchronous.
	Operation Operation[M, K]
	// Annotations returns annotations that are written after each observation, if they differ. Those of Crossplane and of
	// this package are left out.
	Annotations func(observed X) map[string]string
	// Close ends the connection.
	Close func(ctx context.Context) error
}

// Operation follows an asynchronous creation.
type Operation[M resource.Managed, K any] struct {
	// Await returns the key that an operation has created, [ErrOperationRunning],
	// [ErrOperationFailed] or [ErrOperationNotFound]. It does not wait.
	Await func(ctx context.Context, operation string) (K, error)
	// Find returns the operation that was begun for this object, found by [Token], or
	// [ErrOperationNotFound]. Without it, an interrupted creation whose operation still
	// runs can't be found. The object always has a Token, as in Ours.
	Find func(ctx context.Context, mg M) (operation string, err error)
}

// Created is what a creation returns: a key or an operation.
type Created[K any] struct {
	// Key identifies the external resource.
	Key K
	// Operation is the ID of the operation that creates the resource, if the key is not
	// known before it ends.
	Operation string
	// Connection is published as the connection secret.
	Connection managed.ConnectionDetails
}

// Pending returns the result of a creation whose key is known only when the operation has ended.
func Pending[K any](operation string) Created[K] { return Created[K]{Operation: operation} }

// State is the state of an external resource in its lifecycle.
type State string

const (
	// Ready means that the resource can be used.
	Ready State = "Ready"
	// Creating means that the resource is not yet usable. It is not updated.
	Creating State = "Creating"
	// Deleting means that the external system is deleting the resource. It is neither
	// updated nor deleted again.
	Deleting State = "Deleting"
	// Failed means that the resource exists and can't be used.
	Failed State = "Failed"
)

// Lifecycle is the state of an external resource and what the external system says about it.
type Lifecycle struct {
	State   State
	Message string
}

// missing returns the name of a required function that is not set, or empty.
func (e External[M, K, X]) missing() string {
	for _, f := range []struct {
		name  string
		isNil bool
	}{
		{"Get", e.Get == nil}, {"Create", e.Create == nil}, {"Update", e.Update == nil},
		{"Delete", e.Delete == nil}, {"Mirror", e.Mirror == nil}, {"Diff", e.Diff == nil},
	} {
		if f.isNil {
			return f.name
		}
	}
	return ""
}

// copyOf returns a copy of an object, so that the functions of the author cannot change the original.
func copyOf[M resource.Managed](mg M) M {
	return mg.DeepCopyObject().(M)
}

// Difference is one field in which the external resource differs from the spec.
type Difference struct {
	// Field is the path in spec.forProvider, such as "displayName".
	Field string
	// Desired and Observed are the values.
	Desired, Observed string
	// Message replaces the values where there are no two texts to print.
	Message string
	// Secret values are not printed.
	Secret bool
}
