package fleet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
)

// Proposal is the result of a [Naming] for one managed resource.
type Proposal struct {
	// Name is the proposed name; empty if it can't be determined.
	Name string
	// Form is the form of the current name, if it differs from Name.
	Form string
	// Spelling means that Name is another spelling of the current name: both identify the same external resource.
	Spelling bool
	// Err is why the current name is invalid, or why no name can be proposed. An [externalname.InvalidError] has the
	// reason.
	Err error
}

// Naming proposes the name of a managed resource. It returns an error if it could not decide, for example because an
// external system does not answer: the error ends the plan.
type Naming func(ctx context.Context, o *unstructured.Unstructured) (Proposal, error)

// Lookup returns the key of the external resource for a name that does not contain it: a hint, or the
// ID of an operation that has ended.
type Lookup[K any] func(ctx context.Context, o *unstructured.Unstructured, r externalname.Reading[K]) (K, error)

// ErrNoKey means that a Lookup found no key, or several.
var ErrNoKey = errors.New("no key was found for the name")

// formLenient is the form of names that the codec reads but would write differently.
const formLenient = "Lenient"

// FromScheme returns a Naming that proposes the canonical names of a scheme. Without a lookup, it keeps names that do
// not contain the key.
func FromScheme[K any](scheme externalname.Scheme[K], lookup Lookup[K]) Naming {
	return func(ctx context.Context, o *unstructured.Unstructured) (Proposal, error) {
		current := o.GetAnnotations()[managed.AnnotationName]
		reading, err := scheme.Read(current, o.GetName())
		if err != nil {
			return Proposal{Err: err}, nil //nolint:nilerr // the error is what the proposal says
		}
		p := Proposal{Name: reading.Name, Form: reading.Form}
		if reading.Class == externalname.Lenient {
			p.Form = formLenient
		}
		p.Spelling = reading.HasKey()
		if reading.HasKey() || reading.Class == externalname.Empty || lookup == nil {
			return p, nil
		}
		key, err := lookup(ctx, o, reading)
		if errors.Is(err, ErrNoKey) {
			p.Err = err
			return p, nil
		}
		if err != nil {
			return Proposal{}, fmt.Errorf("look up the name of %s: %w", o.GetName(), err)
		}
		p.Name, p.Err = scheme.Codec.Format(key)
		return p, nil
	}
}
