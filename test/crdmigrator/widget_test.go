package crdmigrator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// quickSettle keeps tests short: one API server that renews its lease every
// 10 s adopts a change within milliseconds.
var quickSettle = decision.Policy{Settle: -1}

// widgets is a custom resource made for one test, on one control plane.
type widgets struct {
	t      *testing.T
	plane  *controlplane.ControlPlane
	config *rest.Config
	group  string
	plural string
	kind   string
	name   string // of the CRD

	clusterScoped bool
}

// newWidgets installs a CRD with v1, served and stored, in a group named
// after the test.
func newWidgets(t *testing.T, plane *controlplane.ControlPlane) *widgets {
	t.Helper()
	w := &widgets{t: t, plane: plane, group: groupOf(t), plural: "widgets", kind: "Widget"}
	w.install()
	return w
}

// groups counts the groups, so that a test can run again on one control plane.
var groups atomic.Int64

func groupOf(t *testing.T) string {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return fmt.Sprintf("%s-%d.example.com", name, groups.Add(1))
}

func (w *widgets) install() {
	w.t.Helper()
	w.config, w.name = w.plane.Config(), w.plural+"."+w.group
	w.t.Cleanup(w.uninstall)
	if err := controlplane.InstallCRDs(w.t.Context(), w.config, w.newCRD()); err != nil {
		w.t.Fatal(err)
	}
}

// uninstall deletes the CRD, so that the server does not keep schemas, handlers and caches of 5 MB for each test.
// It removes the objects from etcd first, or the server would write each of them for its deletion. A test that has
// stopped its server, or deleted its CRD, has nothing to remove.
func (w *widgets) uninstall() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), time.Minute)
	defer cancel()
	if w.t.Failed() || w.plane != shared {
		return
	}
	if _, err := w.plane.Etcd().Delete(ctx, w.keys(), clientv3.WithPrefix()); err != nil {
		w.t.Errorf("remove the objects of %s from etcd: %v", w.name, err)
	}
	if err := w.crds().Delete(ctx, w.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.t.Errorf("delete CRD %s: %v", w.name, err)
	}
}

func (w *widgets) newCRD() *apiextensionsv1.CustomResourceDefinition {
	scope := apiextensionsv1.NamespaceScoped
	if w.clusterScoped {
		scope = apiextensionsv1.ClusterScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    w.group,
			Scope:    scope,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: w.plural, Kind: w.kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, true)},
		},
	}
}

func version(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	preserve := true
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: served, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: &preserve,
		}},
		Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
	}
}

// setVersions replaces the versions of the CRD.
func (w *widgets) setVersions(versions ...apiextensionsv1.CustomResourceDefinitionVersion) {
	w.t.Helper()
	if err := w.trySetVersions(versions...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *widgets) trySetVersions(versions ...apiextensionsv1.CustomResourceDefinitionVersion) error {
	_, err := controlplane.UpdateCRD(w.t.Context(), w.config, w.name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = versions
	})
	return err
}

// flip makes v2 the storage version with v1 still served, and returns once the API server
// stores v2.
func (w *widgets) flip() {
	w.t.Helper()
	w.setVersions(version("v1", true, false), version("v2", true, true))
	w.awaitStoring("v2")
}

// awaitStoring writes probes until one is stored at the version, because no API shows it.
func (w *widgets) awaitStoring(version string) {
	w.t.Helper()
	w.awaitStoringFrom("v1", version)
}

// awaitStoringFrom writes the probes at another served version.
func (w *widgets) awaitStoringFrom(written, version string) {
	w.t.Helper()
	deadline := time.Now().Add(awaitLimit)
	for i := 0; ; i++ {
		probe := fmt.Sprintf("probe-%d", i)
		w.create(w.config, written, probe)
		pair, err := w.plane.Etcd().Get(w.t.Context(), w.key(probe))
		if err != nil {
			w.t.Fatal(err)
		}
		stored := len(pair.Kvs) == 1 && strings.Contains(string(pair.Kvs[0].Value), `"apiVersion":"`+w.group+"/"+version+`"`)
		if err := w.at(written).Delete(w.t.Context(), probe, metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
		if stored {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the server does not store %s", version)
		}
	}
}

func (w *widgets) key(name string) string {
	if w.clusterScoped {
		return w.keys() + name
	}
	return w.keys() + "default/" + name
}

// keys is the prefix in etcd of all objects.
func (w *widgets) keys() string {
	return "/registry/" + w.group + "/" + w.plural + "/"
}

// at is the client for one served version.
func (w *widgets) at(version string) dynamic.ResourceInterface {
	return w.through(w.config, version)
}

func (w *widgets) through(config *rest.Config, version string) dynamic.ResourceInterface {
	w.t.Helper()
	objects := w.everywhere(config, version)
	if w.clusterScoped {
		return objects
	}
	return objects.Namespace(metav1.NamespaceDefault)
}

// everywhere is the client for one served version in all namespaces.
func (w *widgets) everywhere(config *rest.Config, version string) dynamic.NamespaceableResourceInterface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: w.group, Version: version, Resource: w.plural})
}

func (w *widgets) object(version, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": w.group + "/" + version,
		"kind":       w.kind,
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"color": "blue", "of": name},
	}}
}

func (w *widgets) create(config *rest.Config, version, name string) {
	w.t.Helper()
	if _, err := w.through(config, version).Create(w.t.Context(), w.object(version, name), metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// fill creates n objects at a version, w-0000 and following.
func (w *widgets) fill(version string, n int) {
	w.t.Helper()
	client := w.at(version)
	errs := make([]error, n)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for i := worker; i < n; i += 8 {
				_, errs[i] = client.Create(w.t.Context(), w.object(version, fmt.Sprintf("w-%04d", i)), metav1.CreateOptions{})
			}
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

// stored counts the objects in etcd by version.
func (w *widgets) stored() map[string]int {
	w.t.Helper()
	counts, err := w.plane.CountStored(w.t.Context(), w.group, w.plural)
	if err != nil {
		w.t.Fatal(err)
	}
	byVersion := map[string]int{}
	for apiVersion, n := range counts {
		byVersion[strings.TrimPrefix(apiVersion, w.group+"/")] = n
	}
	return byVersion
}

func (w *widgets) mustBeStored(reason string, want map[string]int) {
	w.t.Helper()
	if got := w.stored(); !maps.Equal(got, want) {
		w.t.Errorf("%s: etcd holds %v, want %v", reason, got, want)
	}
}

func (w *widgets) crd() *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	clients, err := clientset.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	crd, err := clients.ApiextensionsV1().CustomResourceDefinitions().Get(w.t.Context(), w.name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return crd
}

func (w *widgets) storedVersions() string {
	w.t.Helper()
	return strings.Join(w.crd().Status.StoredVersions, ",")
}

func (w *widgets) mustHaveStoredVersions(reason, want string) {
	w.t.Helper()
	if got := w.storedVersions(); got != want {
		w.t.Errorf("%s: storedVersions is [%s], want [%s]", reason, got, want)
	}
}

func newMigrator(t *testing.T, config *rest.Config, o storageversion.Options) *storageversion.Migrator {
	t.Helper()
	m, err := storageversion.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// migrate plans and runs, waiting until the servers have settled.
func (w *widgets) migrate(ctx context.Context, m *storageversion.Migrator, progress func(decision.Report)) (decision.Report, error) {
	w.t.Helper()
	plan, err := m.Plan(ctx, w.name)
	if err != nil {
		return decision.Report{}, err
	}
	for {
		report, err := m.Run(ctx, plan, progress)
		var notSettled *decision.NotSettledError
		if !errors.As(err, &notSettled) {
			return report, err
		}
		select {
		case <-ctx.Done():
			return report, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (w *widgets) mustMigrate(m *storageversion.Migrator) decision.Report {
	w.t.Helper()
	report, err := w.migrate(w.t.Context(), m, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// label sets a label of the CRD; an empty value removes it.
func (w *widgets) label(key, value string) {
	w.t.Helper()
	_, err := controlplane.UpdateCRD(w.t.Context(), w.config, w.name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		if crd.Labels == nil {
			crd.Labels = map[string]string{}
		}
		crd.Labels[key] = value
		if value == "" {
			delete(crd.Labels, key)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
