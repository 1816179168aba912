package widget

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	// Plural is the name of the resource, in each group.
	Plural = "widgets"
	// Kind is the kind of the objects, in each group.
	Kind = "Widget"
	// Namespace is the namespace of the objects.
	Namespace = "default"

	// objectBytes is the size of an object's payload: the size of an average custom resource, which earlier measurements used, too.
	objectBytes = 2000
	// fillers create objects in parallel.
	fillers = 16
)

// Resource is a custom resource made for a measurement. It sends all requests as the cluster's user.
type Resource struct {
	cluster *frame.Cluster
	group   string
	names   []string
	storage string
	payload int // bytes
}

// New defines one resource, and creates n objects.
func New(ctx context.Context, cluster *frame.Cluster, name string, n int) (*Resource, error) {
	resources, err := Define(ctx, cluster, name)
	if err != nil {
		return nil, err
	}
	frame.Logf("creating %d objects of %s", n, resources[0].CRD())
	return resources[0], resources[0].Fill(ctx, n)
}

// Define defines resources without objects, one for each name. They carry the label that selects CRDs for the manager; a run
// of one CRD does not read it.
func Define(ctx context.Context, cluster *frame.Cluster, names ...string) ([]*Resource, error) {
	resources := make([]*Resource, len(names))
	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(names))
	for i, name := range names {
		r := &Resource{cluster: cluster, group: name + ".bench.example.com", storage: "v1", payload: objectBytes}
		resources[i] = r
		crds[i] = &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{
				Name:   r.CRD(),
				Labels: map[string]string{"godwit.dev/auto-migrate-storage-version": "true"},
			},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: r.group, Scope: apiextensionsv1.NamespaceScoped,
				Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: Plural, Kind: Kind},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{r.version("v1"), r.version("v2")},
			},
		}
	}
	return resources, controlplane.InstallCRDs(ctx, cluster.User, crds...)
}

func (r *Resource) version(name string) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: name == r.storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: new(true),
		}},
	}
}

// SetPayload changes the size of the objects that are created from now on.
func (r *Resource) SetPayload(bytes int) { r.payload = bytes }

// Fill creates n objects.
func (r *Resource) Fill(ctx context.Context, n int) error {
	r.addNames(n)
	return frame.Each(r.names, fillers, r.create(ctx))
}

func (r *Resource) addNames(n int) {
	for i := range n {
		r.names = append(r.names, Name(i))
	}
}

// Touch creates an object and deletes it, so that caches of the resource get an event.
func (r *Resource) Touch(ctx context.Context) error {
	const name = "touch"
	if err := r.create(ctx)(name); err != nil {
		return err
	}
	return r.remove(ctx, name)
}

// CRD returns the name of the CustomResourceDefinition.
func (r *Resource) CRD() string { return Plural + "." + r.group }

// Group returns the API group, which has no other resource.
func (r *Resource) Group() string { return r.group }

// Storage returns the storage version.
func (r *Resource) Storage() string { return r.storage }

// Len returns the number of objects.
func (r *Resource) Len() int { return len(r.names) }

// Name returns the name of the i-th object.
func Name(i int) string { return fmt.Sprintf("w-%06d", i) }

// Prefix returns the prefix of the objects' keys in etcd.
func (r *Resource) Prefix() string { return "/registry/" + r.group + "/" + Plural + "/" }

// PerSecond returns the speed of a pass over all objects.
func (r *Resource) PerSecond(took time.Duration) float64 {
	return float64(len(r.names)) / took.Seconds()
}

func (r *Resource) client() (*rest.RESTClient, error) {
	config := rest.CopyConfig(r.cluster.User)
	config.APIPath, config.GroupVersion = "/apis", &schema.GroupVersion{Group: r.group, Version: "v1"}
	config.NegotiatedSerializer = metadata.ConfigFor(config).NegotiatedSerializer
	config.ContentType = "application/json"
	return rest.RESTClientFor(config)
}

func (r *Resource) create(ctx context.Context) func(string) error {
	client, err := r.client()
	payload := strings.Repeat("x", r.payload)
	return func(name string) error {
		if err != nil {
			return err
		}
		body, err := json.Marshal(map[string]any{
			"apiVersion": r.group + "/v1", "kind": Kind,
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"payload": payload},
		})
		if err != nil {
			return err
		}
		return client.Post().Namespace(Namespace).Resource(Plural).Body(body).Do(ctx).Error()
	}
}

func (r *Resource) remove(ctx context.Context, name string) error {
	client, err := r.client()
	if err != nil {
		return err
	}
	return client.Delete().Namespace(Namespace).Resource(Plural).Name(name).Do(ctx).Error()
}
