package export

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

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

// list returns the names that exist. The external system may list a resource twice while clients create and delete others.
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

// readOne reads the resource by the key in its name, as the provider will.
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
