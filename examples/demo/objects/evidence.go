package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/godwit-dev/godwit/examples/demo/stage"
)

// demo is one run of the story.
type demo struct {
	stage.Stage
	kubectl *stage.Program
	before  []*apiextensionsv1.CustomResourceDefinition
	after   []*apiextensionsv1.CustomResourceDefinition
	crds    apiextensionsclient.CustomResourceDefinitionInterface

	created  map[string]int    // number of objects by resource
	total    int               // number of all objects
	upgraded map[string]string // every object as it was read after the upgrade
}

// storedAt counts in etcd the objects of all kinds that are stored at a version,
// and all objects.
func (d *demo) storedAt(ctx context.Context, version string) (at, all int, err error) {
	for _, plural := range plurals {
		counts, err := d.Plane.CountStored(ctx, group, plural)
		if err != nil {
			return 0, 0, err
		}
		for apiVersion, n := range counts {
			all += n
			if apiVersion == group+"/"+version {
				at += n
			}
		}
	}
	return at, all, nil
}

// revision returns the current revision of etcd.
func (d *demo) revision(ctx context.Context) (int64, error) {
	answer, err := d.Plane.Etcd().Get(ctx, "/registry/", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read etcd's revision: %w", err)
	}
	return answer.Header.Revision, nil
}

// writtenSince counts the objects of a resource that were written after a
// revision of etcd.
func (d *demo) writtenSince(ctx context.Context, plural string, revision int64) (int, error) {
	prefix := "/registry/" + group + "/" + plural + "/"
	answer, err := d.Plane.Etcd().Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithMinModRev(revision+1))
	if err != nil {
		return 0, fmt.Errorf("read %s from etcd: %w", prefix, err)
	}
	return len(answer.Kvs), nil
}

// storedVersions returns status.storedVersions of a CRD, separated by commas.
func (d *demo) storedVersions(ctx context.Context, plural string) (string, error) {
	crd, err := d.crds.Get(ctx, crdName(plural), metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read CRD %s: %w", crdName(plural), err)
	}
	return strings.Join(crd.Status.StoredVersions, ","), nil
}

// claimStoredVersions claims status.storedVersions of one CRD.
func (d *demo) claimStoredVersions(ctx context.Context, plural, want string) error {
	got, err := d.storedVersions(ctx, plural)
	if err != nil {
		return err
	}
	return stage.Claim(d.Teller, "storedVersions of "+plural, got, want)
}

// read reads every object in full through the new version. It leaves out the
// fields that a rewrite may change: resourceVersion and managedFields.
func (d *demo) read(ctx context.Context) (map[string]string, error) {
	objects := map[string]string{}
	for _, plural := range plurals {
		client := d.Objects.Resource(resource(plural, newVersion))
		pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) })
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
			u := o.(*unstructured.Unstructured)
			u.SetResourceVersion("")
			u.SetManagedFields(nil)
			text, err := json.Marshal(u)
			objects[plural+"/"+u.GetNamespace()+"/"+u.GetName()] = string(text)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", plural, err)
		}
	}
	return objects, nil
}
