package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

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

// widgets is a custom resource made for the measurement.
type widgets struct {
	plane   *controlplane.ControlPlane
	config  *rest.Config
	group   string
	names   []string
	storage string
}

func newWidgets(ctx context.Context, plane *controlplane.ControlPlane, name string, n int) (*widgets, error) {
	w := &widgets{plane: plane, config: plane.Config(), group: name + ".bench.example.com", storage: "v1"}
	preserve := true
	version := func(name string) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == w.storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &preserve,
			}},
		}
	}
	err := controlplane.InstallCRDs(ctx, w.config, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: w.definition()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: w.group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1"), version("v2")},
		},
	})
	if err != nil {
		return nil, err
	}
	for i := range n {
		w.names = append(w.names, fmt.Sprintf("w-%06d", i))
	}
	say("creating %d objects of %s", n, w.definition())
	return w, w.each(fillers, w.create(ctx))
}

func (w *widgets) definition() string { return "widgets." + w.group }

func (w *widgets) perSecond(took time.Duration) float64 {
	return float64(len(w.names)) / took.Seconds()
}

// each calls do for every name, width at a time.
func (w *widgets) each(width int, do func(name string) error) error {
	next := make(chan string)
	failed := make(chan error, width)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for name := range next {
				if err := do(name); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
feed:
	for _, name := range w.names {
		select {
		case next <- name:
		case err = <-failed:
			break feed
		}
	}
	close(next)
	workers.Wait()
	select {
	case late := <-failed:
		return late
	default:
		return err
	}
}

func (w *widgets) client() (*rest.RESTClient, error) {
	config := rest.CopyConfig(w.config)
	config.APIPath, config.GroupVersion = "/apis", &schema.GroupVersion{Group: w.group, Version: "v1"}
	config.NegotiatedSerializer = metadata.ConfigFor(config).NegotiatedSerializer
	config.ContentType = "application/json"
	return rest.RESTClientFor(config)
}

func (w *widgets) create(ctx context.Context) func(string) error {
	client, err := w.client()
	payload := strings.Repeat("x", objectBytes)
	return func(name string) error {
		if err != nil {
			return err
		}
		body, err := json.Marshal(map[string]any{
			"apiVersion": w.group + "/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"payload": payload},
		})
		if err != nil {
			return err
		}
		return client.Post().Namespace("default").Resource("widgets").Body(body).Do(ctx).Error()
	}
}

// flip makes the other version the storage version and returns once it is
// stored, as a write shows.
func (w *widgets) flip(ctx context.Context) error {
	w.storage = map[string]string{"v1": "v2", "v2": "v1"}[w.storage]
	_, err := controlplane.UpdateCRD(ctx, w.config, w.definition(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == w.storage
		}
	})
	if err != nil {
		return err
	}
	probe := *w
	create := probe.create(ctx)
	for i := 0; ; i++ {
		name := fmt.Sprintf("probe-%s-%d", w.storage, i)
		if err := create(name); err != nil {
			return err
		}
		counts, err := w.plane.CountStored(ctx, w.group, "widgets")
		if err != nil {
			return err
		}
		if err := w.remove(ctx, name); err != nil {
			return err
		}
		if counts[w.group+"/"+w.storage] > 0 {
			return nil
		}
		if i == 100 {
			return fmt.Errorf("the server does not store %s", w.storage)
		}
	}
}

func (w *widgets) remove(ctx context.Context, name string) error {
	client, err := w.client()
	if err != nil {
		return err
	}
	return client.Delete().Namespace("default").Resource("widgets").Name(name).Do(ctx).Error()
}

// flipAndAge flips and waits until godwit has no reason to.
func (w *widgets) flipAndAge(ctx context.Context) error {
	if err := w.flip(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(leaseRenewal):
		return nil
	}
}

// patchAll is the ceiling: an empty merge patch for each name, width at a time,
// at the storage version, with the smallest answer there is.
func (w *widgets) patchAll(ctx context.Context, width int) (time.Duration, error) {
	config := metadata.ConfigFor(w.config)
	config.QPS = -1
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	objects := client.Resource(schema.GroupVersionResource{Group: w.group, Version: w.storage, Resource: "widgets"}).Namespace("default")
	begun := time.Now()
	err = w.each(width, func(name string) error {
		_, err := objects.Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore})
		return err
	})
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	return took, w.mustBeMigrated(ctx)
}

// mustBeMigrated keeps the measurement honest: what is timed has to be work.
func (w *widgets) mustBeMigrated(ctx context.Context) error {
	counts, err := w.plane.CountStored(ctx, w.group, "widgets")
	if err != nil {
		return err
	}
	if counts[w.group+"/"+w.storage] != len(w.names) {
		return fmt.Errorf("etcd holds %v, want %d objects at %s", counts, len(w.names), w.storage)
	}
	return nil
}
