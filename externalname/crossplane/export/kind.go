package export

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Options say how the manifests of one kind look.
type Options[M resource.Managed, X any] struct {
	// New returns a new object with what all manifests have in common: the namespace and spec.providerConfigRef. The kind's
	// Connect gets such an object as well.
	New func() M
	// Fill writes spec.forProvider, every field that the external resource has. It changes nothing else.
	Fill func(mg M, observed X)
	// Name proposes metadata.name, such as the display name. It need be neither valid nor unique.
	Name func(observed X) string
	// Refer replaces values of spec.forProvider by references to objects that are exported as well. It is called after the
	// proof, which needs the values.
	Refer func(mg M, exported Lookup)
}

// Lookup returns metadata.name of the exported object that has the external name. It knows the kinds that come before.
type Lookup func(kind schema.GroupKind, externalName string) (name string, ok bool)

// Kind is a kind to export.
type Kind interface {
	gvk() schema.GroupVersionKind
	// read lists the external resources and proves their manifests.
	read(ctx context.Context, report *KindReport) map[string]manifest
}

// manifest is a manifest that is proven.
type manifest struct {
	// proposed is what the author proposes as metadata.name.
	proposed string
	// render writes the manifest.
	render func(name string, exported Lookup) ([]byte, error)
}

// Of returns the kind of a resource.
func Of[M resource.Managed, K, X any](r crossplane.Resource[M, K, X], o Options[M, X]) Kind {
	return kind[M, K, X]{resource: r, options: o}
}

type kind[M resource.Managed, K, X any] struct {
	resource crossplane.Resource[M, K, X]
	options  Options[M, X]
}

func (k kind[M, K, X]) gvk() schema.GroupVersionKind { return k.resource.Kind }

func (k kind[M, K, X]) read(ctx context.Context, report *KindReport) map[string]manifest {
	external, err := k.connect(ctx)
	if err != nil {
		report.Incomplete = err
		return nil
	}
	if external.Close != nil {
		defer func() { _ = external.Close(ctx) }() // Everything was read, or the error is known.
	}
	keys := k.list(ctx, external, report)
	manifests := map[string]manifest{}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if ctx.Err() != nil {
			report.Incomplete = errors.Join(report.Incomplete, ctx.Err())
			break
		}
		o, err := k.readOne(ctx, external, name)
		switch {
		case errors.Is(err, crossplane.ErrNotFound) && !errors.Is(err, crossplane.ErrParentNotFound):
			report.Gone++
		case err != nil:
			report.Skipped = append(report.Skipped, Skipped{Name: name, Err: err})
		default:
			manifests[name] = k.manifest(o)
		}
	}
	return manifests
}

func (k kind[M, K, X]) connect(ctx context.Context) (crossplane.External[M, K, X], error) {
	if k.options.New == nil || k.options.Fill == nil || k.options.Name == nil {
		return crossplane.External[M, K, X]{}, fmt.Errorf("export %s: Options need New, Fill and Name", k.resource.Kind.Kind)
	}
	external, err := k.resource.Connect(ctx, k.options.New())
	if err == nil && (external.List == nil || external.Get == nil || external.Diff == nil) {
		err = errors.New("the connection needs List, Get and Diff")
	}
	if err != nil {
		return external, fmt.Errorf("export %s: %w", k.resource.Kind.Kind, err)
	}
	return external, nil
}

// list returns the names that exist. The external system may list a resource twice while others come and go.
func (k kind[M, K, X]) list(ctx context.Context, external crossplane.External[M, K, X], report *KindReport) map[string]bool {
	names := map[string]bool{}
	for key, err := range external.List(ctx) {
		if err != nil {
			report.Incomplete = fmt.Errorf("list %s: %w", k.resource.Kind.Kind, err)
			break
		}
		name, err := k.resource.Names.Codec.Format(key)
		if err != nil {
			report.Listed++
			report.Skipped = append(report.Skipped, Skipped{Err: err})
			continue
		}
		names[name] = true
	}
	report.Listed += len(names)
	return names
}

// readOne reads the resource by the key that its name gives, as the provider will.
func (k kind[M, K, X]) readOne(ctx context.Context, external crossplane.External[M, K, X], name string) (observed[M, X], error) {
	key, err := k.resource.Names.Codec.Parse(name)
	if err != nil {
		return observed[M, X]{}, err
	}
	found, err := external.Get(ctx, key)
	if err != nil {
		return observed[M, X]{}, err
	}
	o := k.fill(name, found)
	return o, k.prove(o, external.Diff)
}

func (k kind[M, K, X]) manifest(o observed[M, X]) manifest {
	return manifest{
		proposed: k.options.Name(o.resource),
		render: func(name string, exported Lookup) ([]byte, error) {
			o.object.SetName(name)
			if k.options.Refer != nil {
				k.options.Refer(o.object, exported)
			}
			return encode(k.resource.Kind, o.object)
		},
	}
}

// empty returns a new object of the type of another one.
func empty[M resource.Managed](of M) M {
	return reflect.New(reflect.TypeOf(of).Elem()).Interface().(M)
}
