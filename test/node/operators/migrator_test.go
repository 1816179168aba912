package operators_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
)

// migrated is how many objects two migrators meet.
const migrated = 1500

// geese are a kind of a group.
type geese struct {
	s     *stage
	group string
}

func (g geese) crd() string { return "geese." + g.group }

func (g geese) version(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: new(true),
		}},
	}
}

func (g geese) goose(version, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"name": name, "age": int64(len(name)), "wings": map[string]any{"span": 1.5, "folded": true}, "flights": []any{"north", map[string]any{"days": int64(9)}},
	}}}
	o.SetAPIVersion(g.group + "/" + version)
	o.SetKind("Goose")
	o.SetNamespace(metav1.NamespaceDefault)
	o.SetName(name)
	o.SetLabels(map[string]string{"goose": name})
	return o
}

// newGeese makes objects at v1, and makes v2 the storage version, which the API server has adopted when newGeese returns.
func (s *stage) newGeese(group string) geese {
	s.t.Helper()
	g := geese{s: s, group: group}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: g.crd()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "geese", Kind: "Goose"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{g.version("v1", true), g.version("v2", false)},
		},
	}
	if err := controlplane.InstallCRDs(s.t.Context(), s.Config(), crd); err != nil {
		s.t.Fatal(err)
	}
	for i := range migrated {
		if err := s.Create(s.t.Context(), g.goose("v1", fmt.Sprintf("goose-%04d", i))); err != nil {
			s.t.Fatal(err)
		}
	}
	_, err := controlplane.UpdateCRD(s.t.Context(), s.Config(), g.crd(), func(there *apiextensionsv1.CustomResourceDefinition) {
		there.Spec.Versions[0].Storage, there.Spec.Versions[1].Storage = false, true
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.await("the API server to write v2", func(ctx context.Context) error {
		probe := g.goose("v2", "probe")
		if err := s.Create(ctx, probe); err != nil {
			return err
		}
		stored, err := s.StoredAt(ctx, group, "geese", metav1.NamespaceDefault, "probe")
		if err == nil && stored != group+"/v2" {
			err = fmt.Errorf("it writes %s", stored)
		}
		return errors.Join(err, s.Delete(ctx, probe))
	})
	return g
}

// trims watches a CRD, and counts how often its status.storedVersions changes. The function that it returns ends the watch.
func (g geese) trims() (ended func() []string) {
	g.s.t.Helper()
	watching, err := client.NewWithWatch(g.s.Config(), client.Options{Scheme: g.s.Scheme()})
	if err != nil {
		g.s.t.Fatal(err)
	}
	w, err := watching.Watch(g.s.t.Context(), &apiextensionsv1.CustomResourceDefinitionList{}, client.MatchingFields{"metadata.name": g.crd()})
	if err != nil {
		g.s.t.Fatal(err)
	}
	var seen []string
	var reading sync.WaitGroup
	var stopping atomic.Bool
	reading.Go(func() {
		for event := range w.ResultChan() {
			crd, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
			if !ok && stopping.Load() {
				return // the end of the watch may be read as an error
			}
			if !ok {
				seen = append(seen, fmt.Sprintf("%+v", event))
				continue
			}
			if now := strings.Join(crd.Status.StoredVersions, ","); len(seen) == 0 || seen[len(seen)-1] != now {
				seen = append(seen, now)
			}
		}
	})
	return func() []string {
		stopping.Store(true)
		w.Stop()
		reading.Wait()
		return seen
	}
}

// migrator is one of another project. It migrates the resource that a StorageVersionMigration names.
type migrator struct {
	// name is that of its rows.
	name  string
	needs operator
	// group is that of its StorageVersionMigrations.
	group schema.GroupVersion
	// install is nil for a migrator that is part of the cluster.
	install func(*stage)
}

var inTree = migrator{name: "kube-controller-manager's migrator", group: schema.GroupVersion{Group: "storagemigration.k8s.io", Version: "v1"}}

var inPod = migrator{
	name:  "kube-storage-version-migrator in a pod",
	needs: kubeStorageVersionMigrator, group: schema.GroupVersion{Group: "migration.k8s.io", Version: "v1alpha1"},
	install: (*stage).installKubeStorageVersionMigrator,
}

// installKubeStorageVersionMigrator installs the migrator and its CRDs by the manifests of the project. Its trigger, which would migrate
// all resources of the cluster as soon as it starts, is left out: the test makes the StorageVersionMigration.
func (s *stage) installKubeStorageVersionMigrator() {
	s.t.Helper()
	const namespace = "kube-storage-version-migrator"
	module, err := gomodule.Dir(s.t.Context(), storageVersionMigrator)
	if err != nil {
		s.t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range []string{"storage_migration_crd.yaml", "storage_state_crd.yaml", "namespace-rbac.yaml", "migrator.yaml"} {
		text, err := os.ReadFile(filepath.Join(module, "manifests", name))
		if err != nil {
			s.t.Fatal(err)
		}
		decoded, err := decode([]byte(strings.ReplaceAll(string(text), "NAMESPACE", namespace)))
		if err != nil {
			s.t.Fatal(err)
		}
		objects = append(objects, decoded...)
	}
	s.runImage(objects, "kube-storage-version-migrator-migrator")
	s.apply(objects)
	s.showIfFailed(namespace)
	s.awaitDeployments(namespace)
}

// orderBy makes a StorageVersionMigration, by which another migrator migrates.
func (g geese) orderBy(m migrator) {
	g.s.t.Helper()
	o := g.orderOf(m)
	resource := map[string]any{"group": g.group, "resource": "geese"}
	if m.install != nil { // it asks at a version, the preferred one
		resource["version"] = "v2"
	}
	o.Object["spec"] = map[string]any{"resource": resource}
	if err := g.s.Create(g.s.t.Context(), o); err != nil {
		g.s.t.Fatal(err)
	}
}

func (g geese) orderOf(m migrator) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(m.group.WithKind("StorageVersionMigration"))
	o.SetName("geese-" + strings.ReplaceAll(g.group, ".", "-"))
	return o
}

func (g geese) awaitSucceeded(m migrator) {
	g.s.t.Helper()
	g.s.await(m.name+" to succeed with "+g.group, func(ctx context.Context) error {
		o := g.orderOf(m)
		if err := g.s.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Succeeded" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("its status is %v", o.Object["status"])
	})
}
