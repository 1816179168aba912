package widget

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/walk"
)

// Flip makes the other version the storage version. For a moment, the API server may still store the version before.
func (r *Resource) Flip(ctx context.Context) error {
	r.storage = map[string]string{"v1": "v2", "v2": "v1"}[r.storage]
	_, err := controlplane.UpdateCRD(ctx, r.cluster.User, r.CRD(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == r.storage
		}
	})
	return err
}

// Restrict gives the other version a schema that has the fields of the objects and no others. The version at which they are stored keeps
// any field, so that the schemas do not prove that the other one keeps each value. If restricted is false, the other version keeps any field.
func (r *Resource) Restrict(ctx context.Context, restricted bool) error {
	_, err := controlplane.UpdateCRD(ctx, r.cluster.User, r.CRD(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			v := r.version(crd.Spec.Versions[i].Name)
			if restricted && !v.Storage {
				v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"payload": {Type: "string"}}},
				}}
			}
			crd.Spec.Versions[i] = v
		}
	})
	return err
}

// FlipAndProbe flips, and returns once the API server stores an object that it creates at the new storage version.
func (r *Resource) FlipAndProbe(ctx context.Context) error {
	if err := r.Flip(ctx); err != nil {
		return err
	}
	create := r.create(ctx)
	for i := 0; ; i++ {
		name := fmt.Sprintf("probe-%s-%d", r.storage, i)
		if err := create(name); err != nil {
			return err
		}
		version, err := r.cluster.StoredAt(ctx, r.group, Plural, Namespace, name)
		if err != nil {
			return err
		}
		if err := r.remove(ctx, name); err != nil {
			return err
		}
		if version == r.group+"/"+r.storage {
			return nil
		}
		if i == 100 {
			return fmt.Errorf("the server does not store %s", r.storage)
		}
	}
}

// leaseRenewal is a little more than the 10 s after which API servers renew their identity leases: after that time, every API
// server uses the new storage version as far as godwit can tell, and godwit does not wait.
const leaseRenewal = 12 * time.Second

// Age waits until godwit has no reason to wait after a flip.
func Age(ctx context.Context) error { return walk.Wait(ctx, leaseRenewal) }

// FlipAndAge flips, and waits until godwit has no reason to wait.
func (r *Resource) FlipAndAge(ctx context.Context) error {
	if err := r.FlipAndProbe(ctx); err != nil {
		return err
	}
	return Age(ctx)
}
