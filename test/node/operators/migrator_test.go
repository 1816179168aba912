package operators_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
	"github.com/godwit-dev/godwit/test/node/operators/page"
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
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"name": name}}}
	o.SetAPIVersion(g.group + "/" + version)
	o.SetKind("Goose")
	o.SetNamespace(metav1.NamespaceDefault)
	o.SetName(name)
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

// runGodwit runs the command until it succeeds, as a person does who reads why it does not, and returns what it has said each time.
func (g geese) runGodwit(ctx context.Context) ([]string, error) {
	var said []string
	for {
		out, err := g.s.command(ctx, "godwit", "crd", "run", g.crd(), "--yes", "--settle=1s")
		said = append(said, out)
		if failed := (*exec.ExitError)(nil); err == nil || !errors.As(err, &failed) || ctx.Err() != nil {
			return said, err
		}
		select {
		case <-ctx.Done():
			return said, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// expectOneMigration fails unless each object was written once, and storedVersions were trimmed once.
func (g geese) expectOneMigration(seen []string) {
	g.s.t.Helper()
	if want := []string{"v1,v2", "v2"}; !slices.Equal(seen, want) {
		g.s.t.Errorf("status.storedVersions were %q, want %q: one trim", seen, want)
	}
	keys, err := g.s.Etcd().Get(g.s.t.Context(), "/registry/"+g.group+"/geese/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil || len(keys.Kvs) != migrated {
		g.s.t.Fatalf("etcd has %d objects, want %d: %v", len(keys.Kvs), migrated, err)
	}
	for _, kv := range keys.Kvs {
		if kv.Version != 2 {
			g.s.t.Errorf("%s was written %d times, want 2: the creation, and one migration", kv.Key, kv.Version)
		}
	}
	g.s.t.Log(g.s.mustRun("godwit", "crd", "verify", g.crd(), "--etcd-servers="+g.s.EtcdEndpoint()))
}

// TestInTreeMigrator: kube-controller-manager migrates the same objects. Godwit yields while it does, and writes nothing twice.
func TestInTreeMigrator(t *testing.T) {
	t.Run("first", func(t *testing.T) { startSecond(t, inTree, "first.example.com") })
	t.Run("at once", func(t *testing.T) { startFirst(t, inTree, "at-once.example.com") })
}

// TestKubeStorageVersionMigrator: a migrator in a pod migrates the same objects. It leaves storedVersions to others.
func TestKubeStorageVersionMigrator(t *testing.T) {
	t.Run("first", func(t *testing.T) { startSecond(t, inPod, "first-in-pod.example.com") })
	t.Run("at once", func(t *testing.T) { startFirst(t, inPod, "at-once-in-pod.example.com") })
}

// startSecond starts Godwit after another migrator.
func startSecond(t *testing.T, m migrator, group string) {
	s := newStage(t, m.needs)
	if m.install != nil {
		m.install(s)
	}
	g := s.newGeese(group)
	ended := g.trims()
	began := time.Now()
	g.orderBy(m)
	said, err := g.runGodwit(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
	}
	took := time.Since(began)
	g.awaitSucceeded(m)
	if !strings.Contains(said[0], "MigrationInProgress") {
		t.Errorf("godwit did not say that another migrator is at work:\n%s", said[0])
	}
	t.Logf("godwit said at first:\n%s\nand in the end:\n%s", said[0], said[len(said)-1])
	g.expectOneMigration(ended())
	record(t, page.Row{
		Operator: m.name + ", started before Godwit", Releases: []string{"v1", "v2"}, Objects: migrated,
		Took: took, Also: "Godwit yielded; one trim; each object was written once",
	})
}

// startFirst starts Godwit, and another migrator while Godwit writes.
func startFirst(t *testing.T, m migrator, group string) {
	s := newStage(t, m.needs)
	if m.install != nil {
		m.install(s)
	}
	g := s.newGeese(group)
	ended := g.trims()
	began := time.Now()
	var said []string
	var failed error
	var running sync.WaitGroup
	running.Go(func() { said, failed = g.runGodwit(t.Context()) })
	s.await("Godwit to write", func(ctx context.Context) error {
		stored, err := s.CountStored(ctx, g.group, "geese")
		if err == nil && stored[g.group+"/v2"] == 0 {
			err = fmt.Errorf("etcd has %v", stored)
		}
		return err
	})
	g.orderBy(m)
	running.Wait()
	took := time.Since(began)
	if failed != nil {
		t.Fatalf("%v\n%s", failed, strings.Join(said, "\n"))
	}
	g.awaitSucceeded(m)
	t.Logf("godwit said:\n%s", strings.Join(said, "\n"))
	g.expectOneMigration(ended())
	record(t, page.Row{
		Operator: m.name + ", started during Godwit's run", Releases: []string{"v1", "v2"}, Objects: migrated,
		Took: took, Also: "one trim; each object was written once",
	})
}
