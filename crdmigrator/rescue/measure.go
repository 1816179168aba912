package rescue

import (
	"context"
	"fmt"
	"iter"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// measure compares each object at the probe version, which shows it as it is stored, with the storage version, at which a
// rewrite would store it.
func (r *Rescuer) measure(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) ([]Change, error) {
	stored, would := kube.ResourceOf(crd), kube.ResourceOf(crd)
	stored.Version = probeVersion
	next, stop := iter.Pull2(r.objects(ctx, stored))
	defer stop()
	found := changes{}
	before, err, more := next()
	for after, afterErr := range r.objects(ctx, would) {
		if afterErr != nil {
			return nil, fmt.Errorf("read the objects of %s at %s: %w", crd.Name, would.Version, afterErr)
		}
		for more && err == nil && walk.Key(before) < walk.Key(after) {
			before, err, more = next()
		}
		if err != nil {
			return nil, fmt.Errorf("read the objects of %s as they are stored: %w", crd.Name, err)
		}
		// An object that changed between the two lists was written at the storage version.
		if more && walk.Key(before) == walk.Key(after) && before.GetResourceVersion() == after.GetResourceVersion() {
			found.compare(walk.Key(after), before.Object, after.Object)
		}
	}
	return found.list(), nil
}

// objects are whole objects in the order of their keys.
func (r *Rescuer) objects(ctx context.Context, resource schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for page, err := range r.client.WholeObjects(ctx, kube.Scope{Resource: resource}, walk.ListOptions{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, o := range page.Items {
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}
