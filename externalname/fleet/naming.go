package fleet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname"
)

// Proposal is what a [Naming] says about the name of one managed resource.
type Proposal struct {
	// Name is the one that the managed resource is to have; empty if it can't be found out.
	Name string
	// Form says how the current name is written, if it is not Name.
	Form string
	// Err is why the current name is invalid, or why there is no other one. An
	// [externalname.InvalidError] has the reason.
	Err error
}

// Naming proposes the name of a managed resource. Its error means that nothing was found out, as when an
// external system does not answer: the plan ends with it.
type Naming func(ctx context.Context, o *unstructured.Unstructured) (Proposal, error)

// Lookup returns the key of the external resource for a name that does not contain it: a hint, or the
// ID of an operation that has ended.
type Lookup[K any] func(ctx context.Context, o *unstructured.Unstructured, r externalname.Reading[K]) (K, error)

// ErrNoKey is the error of a Lookup that finds no key, or several.
var ErrNoKey = errors.New("no key was found for the name")

// formLenient is the form of names that the codec reads and writes in another way.
const formLenient = "Lenient"

// FromScheme proposes the canonical names of a scheme. Names that do not contain the key stay as they
// are without a lookup.
func FromScheme[K any](scheme externalname.Scheme[K], lookup Lookup[K]) Naming {
	return func(ctx context.Context, o *unstructured.Unstructured) (Proposal, error) {
		current := o.GetAnnotations()[annotationName]
		reading, err := scheme.Read(current, o.GetName())
		if err != nil {
			return Proposal{Err: err}, nil //nolint:nilerr // the error is what the proposal says
		}
		p := Proposal{Name: reading.Name, Form: reading.Form}
		if reading.Class == externalname.Lenient {
			p.Form = formLenient
		}
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
