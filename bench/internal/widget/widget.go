// Package widget makes custom resources that are there to be migrated, from one
// version to the other and back, and counts in etcd what became of their objects.
package widget

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	// objectBytes is the size of an object's payload: that of a middling
	// custom resource, and what our earlier measurements used.
	objectBytes = 2000

	// fillers create objects in parallel.
	fillers = 16

	// leaseRenewal is a little more than the 10 s at which API servers renew
	// their identity leases: a flip that old is adopted as far as godwit can
	// tell, and it does not wait.
	leaseRenewal = 12 * time.Second
)

// Resource is a custom resource made for a measurement.
type Resource struct {
	plane   *controlplane.ControlPlane
	config  *rest.Config
	group   string
	names   []string
	storage string
	payload int // bytes
}

// New makes one resource of n objects.
func New(ctx context.Context, plane *controlplane.ControlPlane, name string, n int) (*Resource, error) {
	resources, err := Define(ctx, plane, name)
	if err != nil {
		return nil, err
	}
	measure.Say("creating %d objects of %s", n, resources[0].CRD())
	return resources[0], resources[0].Fill(ctx, n)
}

// Define makes resources without objects, one for each name. They carry the label
// that a manager looks for; a run of one CRD does not read it.
func Define(ctx context.Context, plane *controlplane.ControlPlane, names ...string) ([]*Resource, error) {
	resources := make([]*Resource, len(names))
	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(names))
	for i, name := range names {
		r := &Resource{plane: plane, config: plane.Config(), group: name + ".bench.example.com", storage: "v1", payload: objectBytes}
		resources[i] = r
		crds[i] = &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{
				Name:   r.CRD(),
				Labels: map[string]string{"godwit.dev/auto-migrate-storage-version": "true"},
			},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: r.group, Scope: apiextensionsv1.NamespaceScoped,
				Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: Plural, Kind: "Widget"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{r.version("v1"), r.version("v2")},
			},
		}
	}
	return resources, controlplane.InstallCRDs(ctx, plane.Config(), crds...)
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
	for i := range n {
		r.names = append(r.names, Name(i))
	}
	return measure.Each(r.names, fillers, r.create(ctx))
}

// Config is that of the user who works on the resource, the administrator unless [Resource.As] names another.
func (r *Resource) Config() *rest.Config { return rest.CopyConfig(r.config) }

// CRD is the name of the CustomResourceDefinition.
func (r *Resource) CRD() string { return "widgets." + r.group }

// Storage is the version that objects are to be stored at.
func (r *Resource) Storage() string { return r.storage }

// PerSecond is the speed of a pass over all objects.
func (r *Resource) PerSecond(took time.Duration) float64 {
	return float64(len(r.names)) / took.Seconds()
}

func (r *Resource) client() (*rest.RESTClient, error) {
	config := rest.CopyConfig(r.config)
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
			"apiVersion": r.group + "/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"payload": payload},
		})
		if err != nil {
			return err
		}
		return client.Post().Namespace(Namespace).Resource(Plural).Body(body).Do(ctx).Error()
	}
}

// Flip makes the other version the storage version. The API server may continue
// storing the one before for some moments.
func (r *Resource) Flip(ctx context.Context) error {
	r.storage = map[string]string{"v1": "v2", "v2": "v1"}[r.storage]
	_, err := controlplane.UpdateCRD(ctx, r.config, r.CRD(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == r.storage
		}
	})
	return err
}

// FlipAndProbe flips and returns once the version is stored, as a write shows.
func (r *Resource) FlipAndProbe(ctx context.Context) error {
	if err := r.Flip(ctx); err != nil {
		return err
	}
	probe := *r
	create := probe.create(ctx)
	for i := 0; ; i++ {
		name := fmt.Sprintf("probe-%s-%d", r.storage, i)
		if err := create(name); err != nil {
			return err
		}
		version, err := r.plane.StoredAt(ctx, r.group, Plural, Namespace, name)
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

func (r *Resource) remove(ctx context.Context, name string) error {
	client, err := r.client()
	if err != nil {
		return err
	}
	return client.Delete().Namespace(Namespace).Resource(Plural).Name(name).Do(ctx).Error()
}

// FlipAndAge flips and waits until godwit has no reason to.
func (r *Resource) FlipAndAge(ctx context.Context) error {
	if err := r.FlipAndProbe(ctx); err != nil {
		return err
	}
	return Age(ctx)
}

// WarmUp makes passes before the first turn. An API server that has just started is up to a third slower: it collects garbage
// more often the less it holds.
func (r *Resource) WarmUp(ctx context.Context) error {
	for range 3 {
		if err := r.FlipAndProbe(ctx); err != nil {
			return err
		}
		if _, err := r.PatchAll(ctx, measure.InFlight[1]); err != nil {
			return err
		}
	}
	return nil
}

// PrepareTurn puts every object at the other version and waits. First each object is patched once, which changes none unless the
// turn before ended early: every turn follows fast requests and a pause, whatever was measured before it.
func (r *Resource) PrepareTurn(ctx context.Context) error {
	if _, err := r.PatchAll(ctx, measure.InFlight[1]); err != nil {
		return err
	}
	return r.FlipAndAge(ctx)
}

// Age waits until godwit has no reason to wait after a flip.
func Age(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(leaseRenewal):
		return nil
	}
}

// PatchAll is the ceiling: an empty merge patch for each name, width at a time,
// at the storage version, with the smallest answer there is.
func (r *Resource) PatchAll(ctx context.Context, width int) (time.Duration, error) {
	config := metadata.ConfigFor(r.config)
	config.QPS = -1
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	objects := client.Resource(schema.GroupVersionResource{Group: r.group, Version: r.storage, Resource: Plural}).Namespace(Namespace)
	begun := time.Now()
	err = measure.Each(r.names, width, func(name string) error {
		_, err := objects.Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore})
		return err
	})
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	return took, r.MustBeMigrated(ctx)
}

// MustBeMigrated keeps the measurement honest: what is timed has to be work.
func (r *Resource) MustBeMigrated(ctx context.Context) error {
	counts, err := r.plane.CountStored(ctx, r.group, "widgets")
	if err != nil {
		return err
	}
	if counts[r.group+"/"+r.storage] != len(r.names) {
		return fmt.Errorf("etcd holds %v, want %d objects at %s", counts, len(r.names), r.storage)
	}
	return nil
}

// MustBeTrimmed is the end of a migration.
func (r *Resource) MustBeTrimmed(ctx context.Context) error {
	clients, err := clientset.NewForConfig(r.config)
	if err != nil {
		return err
	}
	crd, err := clients.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, r.CRD(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !slices.Equal(crd.Status.StoredVersions, []string{r.storage}) {
		return fmt.Errorf("%s: storedVersions are %v, want %s alone", crd.Name, crd.Status.StoredVersions, r.storage)
	}
	return nil
}
