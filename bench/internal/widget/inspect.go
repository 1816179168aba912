package widget

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Plural is the name of the resource, in each group.
const Plural = "widgets"

// Kind of the objects, in each group.
const Kind = "Widget"

// Namespace of the objects.
const Namespace = "default"

// Group is the API group, which the resource has for itself.
func (r *Resource) Group() string { return r.group }

// Len is the number of objects.
func (r *Resource) Len() int { return len(r.names) }

// Name of an object, by its number.
func Name(i int) string { return fmt.Sprintf("w-%06d", i) }

// Prefix of the objects' keys in etcd.
func (r *Resource) Prefix() string { return "/registry/" + r.group + "/" + Plural + "/" }

// As returns the resource for another user.
func (r *Resource) As(user *rest.Config) *Resource {
	other := *r
	other.config = rest.CopyConfig(user)
	return &other
}

// Touch creates an object and deletes it, so that caches of the resource get an event.
func (r *Resource) Touch(ctx context.Context) error {
	const name = "touch"
	if err := r.create(ctx)(name); err != nil {
		return err
	}
	return r.remove(ctx, name)
}

// Old counts in etcd the objects that are at another version than the storage version.
func (r *Resource) Old(ctx context.Context) (int, error) {
	counts, err := r.plane.CountStored(ctx, r.group, Plural)
	if err != nil {
		return 0, err
	}
	old := 0
	for version, n := range counts {
		if version != r.group+"/"+r.storage {
			old += n
		}
	}
	return old, nil
}

// StoredVersions are those of the CRD's status.
func (r *Resource) StoredVersions(ctx context.Context) ([]string, error) {
	clients, err := clientset.NewForConfig(r.config)
	if err != nil {
		return nil, err
	}
	crd, err := clients.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, r.CRD(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return crd.Status.StoredVersions, nil
}
