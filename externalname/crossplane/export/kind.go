package export

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Options configure the manifests of one kind.
type Options[M resource.Managed, X any] struct {
	// New returns a new object with what all manifests have in common: the namespace and spec.providerConfigRef. The kind's
	// Connect gets such an object as well.
	New func() M
	// Fill writes every field of the external resource to spec.forProvider. It changes nothing else.
	Fill func(mg M, observed X)
	// Name proposes metadata.name, such as the display name. It need be neither valid nor unique.
	Name func(observed X) string
	// Refer replaces values of spec.forProvider with references to other exported objects. It is called after the
	// proof, which needs the values.
	Refer func(mg M, exported Lookup)
}

// Lookup returns metadata.name of the exported object with an external name. It finds objects of earlier kinds only.
type Lookup func(kind schema.GroupKind, externalName string) (name string, ok bool)

// Kind is a kind to export.
type Kind interface {
	gvk() schema.GroupVersionKind
	// read lists the external resources and proves their manifests.
	read(ctx context.Context, report *KindReport) map[string]manifest
}

// manifest is a proven manifest.
type manifest struct {
	// proposed is the metadata.name that the author proposes.
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
