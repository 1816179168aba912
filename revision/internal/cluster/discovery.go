package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
)

// Discovery reads each document of the API server's discovery once. It is for one moment, and
// for several goroutines.
type Discovery struct {
	client *Client
	lists  sync.Map // of func() (*metav1.APIResourceList, error), by the GroupVersion
}

// Discovery of what is served now.
func (c *Client) Discovery() *Discovery { return &Discovery{client: c} }

// Served finds the version at which a resource is to be read; empty where the cluster has no
// such resource. A resource that exists and that can't be read is an error: its objects may
// refer to anything. The versions are asked for one after the other, the best one first, since
// most clusters serve that: the document of the group would be one request more.
func (d *Discovery) Served(ctx context.Context, r schema.GroupResource, versions []string) (string, error) {
	for _, v := range versions {
		resources, err := d.resources(ctx, schema.GroupVersion{Group: r.Group, Version: v})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return "", fmt.Errorf("read discovery of %s/%s: %w", r.Group, v, err)
		}
		if slices.ContainsFunc(resources.APIResources, func(one metav1.APIResource) bool { return one.Name == r.Resource }) {
			return v, nil
		}
	}
	return "", d.client.unserved(ctx, r, versions)
}

func (d *Discovery) resources(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	read, _ := d.lists.LoadOrStore(gv, sync.OnceValues(func() (*metav1.APIResourceList, error) {
		var resources metav1.APIResourceList
		return &resources, d.client.ask(ctx, d.client.json.Get().AbsPath("apis", gv.Group, gv.Version), &resources)
	}))
	return read.(func() (*metav1.APIResourceList, error))()
}

// unserved is an error where a CRD defines a resource after all.
func (c *Client) unserved(ctx context.Context, r schema.GroupResource, versions []string) error {
	if r.Group == appsv1.GroupName {
		return fmt.Errorf("read discovery of %s: it serves none of %v", r, versions)
	}
	crd, err := c.CRD(ctx, r)
	if err != nil || crd == nil {
		return err
	}
	return fmt.Errorf("read discovery of %s: the customresourcedefinition serves %v, and none of the versions that are known: %v; what refers to revisions there can't be seen", r, kube.ServedVersions(crd), versions)
}

// CRD reads a CRD live; nil if there is none.
func (c *Client) CRD(ctx context.Context, r schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := c.ask(ctx, c.json.Get().AbsPath("apis", apiextensionsv1.GroupName, "v1", "customresourcedefinitions", r.String()), crd)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read customresourcedefinition %s: %w", r, err)
	}
	return crd, nil
}
