package property

import (
	"context"
	"fmt"
	"math/rand/v2"
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

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/test/controlplane"
)

var prefix = clientv3.WithPrefix()

func (p *play) keys() string { return "/registry/" + p.group + "/things/" }

// actor is the randomness of one actor, so that the order in which actors run changes no choice.
func (p *play) actor(i int) *rand.Rand { return rand.New(rand.NewPCG(p.seed, uint64(i+1))) }

func (p *play) newCRD(storage string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: p.crd},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: p.group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{p.version("v1", storage == "v1"), p.version("v2", storage == "v2")},
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

// create creates the CRD and its objects.
func (p *play) create(storage string) {
	began := time.Now()
	if err := controlplane.InstallCRDs(p.t.Context(), plane.Config(), p.newCRD(storage)); err != nil {
		p.t.Fatal(err)
	}
	crd := p.live()
	p.log.begins(crd.UID, flip{storage, began, time.Now()})
	p.fill(crd.UID)
}

func (p *play) live() *apiextensionsv1.CustomResourceDefinition {
	crd, err := p.crds().Get(p.t.Context(), p.crd, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return crd
}

// fill creates the objects through v1. The still ones have a secret.
func (p *play) fill(crd types.UID) {
	for i := range objects {
		spec := map[string]any{"n": int64(0), "color": "blue"}
		if i < still {
			spec["secret"] = "of " + nameOf(i)
		}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": p.group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": nameOf(i)}, "spec": spec,
		}}
		created, err := p.at(plane.Config(), "v1").Create(p.t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		p.log.created(created.GetUID(), crd)
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
		time.Sleep(upTo(random, p.pace.pause/50))
	}
}

func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

// write patches one object. The answer says which object was written, that of the old CRD or that of the new one. A refusal, as
// where the version is not served now, or the CRD is being created again, leaves nothing in the log.
func (p *play) write(ctx context.Context, random *rand.Rand, name string, n int64) {
	config := plane.Config()
	p.through.RLock()
	defer p.through.RUnlock()
	if p.settle != noSettle && !p.lags && random.IntN(2) == 0 {
		config = second.Config()
	}
	p.log.tries(name, n)
	patch := fmt.Appendf(nil, `{"spec":{"n":%d}}`, n)
	version := []string{"v1", "v2"}[random.IntN(2)]
	o, err := p.at(config, version).Patch(context.WithoutCancel(ctx), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		p.refused.Add(1)
		return
	}
	p.writes.Add(1)
	if extra, ok := p.grown(); ok && version == "v2" { // the schema has another field: the same user writes it
		more := fmt.Appendf(nil, `{"spec":{%q:"kept"}}`, extra)
		answer, err := p.at(plane.Config(), version).Patch(context.WithoutCancel(ctx), name, types.MergePatchType, more, metav1.PatchOptions{})
		if value, _, _ := unstructured.NestedString(objectOf(answer), "spec", extra); err == nil && value == "kept" {
			p.log.grew(answer.GetUID(), extra)
		}
	}
	if value, _, _ := unstructured.NestedInt64(o.Object, "spec", "n"); value == n {
		p.log.wrote(o.GetUID(), n)
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

// flip makes a version the storage version.
func (p *play) flip(storage string) {
	began, before := time.Now(), storage
	p.change(func(crd *apiextensionsv1.CustomResourceDefinition) {
		before = kube.StorageVersion(crd)
		setStorage(crd, storage)
	})
	if storage != before {
		p.flips.Add(1)
		p.log.flipped(flip{storage, began, time.Now()})
	}
}

func (p *play) describe(text string) {
	p.change(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = text
	})
}

// edit changes the CRD: it makes another version the storage version, stops serving one, or adds a field to both. Or it deletes the
// CRD and creates it again, for the first time after a change of the storage version.
func (p *play) edit(ctx context.Context) {
	random, storage := p.actor(200), "v1"
	other := map[string]string{"v1": "v2", "v2": "v1"}
	for i := 0; ctx.Err() == nil; i++ {
		p.edits.Add(1)
		switch choice := random.IntN(6); {
		case p.recreates && (i == 1 || i > 1 && choice == 0):
			storage = p.recreate(ctx, random)
		case choice <= 2, p.recreates && i == 0:
			storage = other[storage]
			p.flip(storage)
		case choice == 3:
			serving := random.IntN(2) == 0
			p.change(func(crd *apiextensionsv1.CustomResourceDefinition) { serve(crd, other[storage], serving) })
		case choice == 4:
			p.describe(fmt.Sprint("edit ", i))
		default:
			p.addField(fmt.Sprintf("extra%d", i))
		}
		pause := 200*time.Millisecond + upTo(random, p.pace.pause)
		if i%2 == 1 {
			pause += p.pace.quiet
		}
		wait(ctx, pause)
	}
}

func (p *play) addField(field string) {
	if p.settle == noSettle {
		p.lagging.Lock()
		defer p.lagging.Unlock()
		defer time.Sleep(catchUp)
	}
	p.change(func(crd *apiextensionsv1.CustomResourceDefinition) {
		for v := range crd.Spec.Versions {
			crd.Spec.Versions[v].Schema.OpenAPIV3Schema.Properties["spec"].Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
	})
	p.log.hasField(field)
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
		wait(ctx, upTo(random, p.pace.pause))
		p.whileLagging(func() { wait(ctx, p.pace.lag/8+upTo(random, p.pace.lag*7/8)) })
	}
}

// catchUp is how long the second server takes, at most, to see the changes of CRDs that were held back.
const catchUp = 300 * time.Millisecond

// whileLagging calls f while the second server does not see changes of CRDs. Then the server catches up, and users may use it again.
func (p *play) whileLagging(f func()) {
	p.lagging.Lock()
	defer p.lagging.Unlock()
	p.setLags(true)
	gate.Hold()
	p.holds.Add(1)
	defer func() {
		gate.Release()
		time.Sleep(catchUp)
		p.setLags(false)
	}()
	f()
}

func (p *play) setLags(lags bool) {
	p.through.Lock()
	defer p.through.Unlock()
	p.lags = lags
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
