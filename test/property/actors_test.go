package property

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
)

var prefix = clientv3.WithPrefix()

func (p *play) keys() string { return "/registry/" + p.group + "/things/" }

// actor is the randomness of one actor, so that the order in which actors run changes no choice.
func (p *play) actor(i int) *rand.Rand { return rand.New(rand.NewPCG(p.seed, uint64(i+1))) }

// withoutLeases hides the identity leases from a run, so that a play need not wait for their renewals.
type withoutLeases struct{ next http.RoundTripper }

func (w withoutLeases) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/leases") {
		return &http.Response{
			StatusCode: http.StatusForbidden, Request: r, ProtoMajor: 2, Header: http.Header{"Content-Type": {"application/json"}},
			Body: http.NoBody,
		}, nil
	}
	return w.next.RoundTrip(r)
}

func (p *play) newCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: p.crd},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: p.group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{p.version("v1", true), p.version("v2", false)},
		},
	}
	if p.converts {
		crd.Spec.Conversion = p.convert()
	}
	return crd
}

func (p *play) version(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := map[string]apiextensionsv1.JSONSchemaProps{"n": {Type: "integer"}, "color": text, "secret": text}
	if name == "v2" && p.lossy && !p.converts {
		delete(spec, "secret")
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: spec}},
		}},
	}
}

func nameOf(i int) string { return fmt.Sprintf("t-%03d", i) }

// fill creates the objects at v1. The still ones have a secret.
func (p *play) fill() {
	p.t.Helper()
	for i := range objects {
		spec := map[string]any{"n": int64(0), "color": "blue"}
		if i < still {
			spec["secret"] = "of " + nameOf(i)
		}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": p.group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": nameOf(i)}, "spec": spec,
		}}
		if _, err := p.at(plane.Config(), "v1").Create(p.t.Context(), o, metav1.CreateOptions{}); err != nil {
			p.t.Fatal(err)
		}
		p.log.wrote(nameOf(i), 0)
	}
}

func (p *play) at(config *rest.Config, version string) dynamic.ResourceInterface {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		p.t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: p.group, Version: version, Resource: "things"}).Namespace(metav1.NamespaceDefault)
}

// user writes a number into some objects, each of which has no other writer, through any version and server. Each answered write is
// in the log.
func (p *play) user(ctx context.Context, i, users int) {
	random := p.actor(i)
	for n := int64(1); ctx.Err() == nil; n++ {
		object := still + i + users*random.IntN((objects-still)/users)
		p.write(ctx, random, nameOf(object), n)
		time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
	}
}

func (p *play) write(ctx context.Context, random *rand.Rand, name string, n int64) {
	config := plane.Config()
	p.through.RLock()
	defer p.through.RUnlock()
	if p.settle > 0 && !p.lags && random.IntN(2) == 0 {
		config = second.Config()
	}
	p.log.tries(name, n)
	patch := fmt.Appendf(nil, `{"spec":{"n":%d}}`, n)
	version := []string{"v1", "v2"}[random.IntN(2)]
	o, err := p.at(config, version).Patch(context.WithoutCancel(ctx), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return // as where the version is not served now
	}
	p.writes.Add(1)
	if extra, ok := p.grown(); ok && version == "v2" { // the schema has another field: the same user writes it
		more := fmt.Appendf(nil, `{"spec":{%q:"kept"}}`, extra)
		answer, err := p.at(plane.Config(), version).Patch(context.WithoutCancel(ctx), name, types.MergePatchType, more, metav1.PatchOptions{})
		if value, _, _ := unstructured.NestedString(objectOf(answer), "spec", extra); err == nil && value == "kept" {
			p.log.grew(name, extra)
		}
	}
	if value, _, _ := unstructured.NestedInt64(o.Object, "spec", "n"); value == n {
		p.log.wrote(name, n)
	}
}

func objectOf(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}

func (p *play) crds() apiextensionsclient.CustomResourceDefinitionInterface {
	clients, err := clientset.NewForConfig(plane.Config())
	if err != nil {
		p.t.Fatal(err)
	}
	return clients.ApiextensionsV1().CustomResourceDefinitions()
}

func (p *play) change(edit func(*apiextensionsv1.CustomResourceDefinition)) {
	if _, err := controlplane.UpdateCRD(p.t.Context(), plane.Config(), p.crd, edit); err != nil {
		p.t.Error(err)
	}
}

// edit changes the CRD: it makes another version the storage version, stops serving one, or adds a field to both.
func (p *play) edit(ctx context.Context) {
	random, storage := p.actor(200), "v1"
	for i := 0; ctx.Err() == nil; i++ {
		p.edits.Add(1)
		switch random.IntN(5) {
		case 0, 1:
			storage = map[string]string{"v1": "v2", "v2": "v1"}[storage]
			p.flips.Add(1)
			p.change(func(crd *apiextensionsv1.CustomResourceDefinition) { setStorage(crd, storage) })
		case 2:
			other := map[string]string{"v1": "v2", "v2": "v1"}[storage]
			serving := random.IntN(2) == 0
			p.change(func(crd *apiextensionsv1.CustomResourceDefinition) { serve(crd, other, serving) })
		case 3:
			p.change(func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = fmt.Sprint("edit ", i)
			})
		default:
			field := fmt.Sprintf("extra%d", i)
			p.change(func(crd *apiextensionsv1.CustomResourceDefinition) {
				for v := range crd.Spec.Versions {
					crd.Spec.Versions[v].Schema.OpenAPIV3Schema.Properties["spec"].Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
				}
			})
			p.log.hasField(field)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(200+random.IntN(1500)) * time.Millisecond):
		}
	}
}

func setStorage(crd *apiextensionsv1.CustomResourceDefinition, storage string) {
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		v.Storage = v.Name == storage
		v.Served = v.Served || v.Storage
	}
}

func serve(crd *apiextensionsv1.CustomResourceDefinition, version string, served bool) {
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Name == version {
			v.Served = served || v.Storage
		}
	}
}

// grown returns the newest field that the CRD has gained.
func (p *play) grown() (string, bool) { return p.log.newestField() }

// lag holds the second server's watch of CRDs back from time to time. Users don't write through it meanwhile: a server that lags,
// with a fresh lease, and that does not answer a run, is what no run can find.
func (p *play) lag(ctx context.Context) {
	random := p.actor(300)
	for ctx.Err() == nil {
		wait(ctx, time.Duration(random.IntN(1500))*time.Millisecond)
		p.through.Lock()
		p.lags = true
		p.through.Unlock()
		gate.Hold()
		p.holds.Add(1)
		wait(ctx, time.Duration(200+random.IntN(1500))*time.Millisecond)
		p.release()
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// release lets the second server catch up, and then users may use it again.
func (p *play) release() {
	gate.Release()
	const catchUp = 300 * time.Millisecond
	time.Sleep(catchUp)
	p.through.Lock()
	defer p.through.Unlock()
	p.lags = false
}
