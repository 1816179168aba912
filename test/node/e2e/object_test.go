package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

// geese is a kind whose objects are migrated.
type geese struct {
	s     *stage
	group string
	// written has the generation and the content of each object.
	written map[string]string
	// flipped is the revision of etcd at which v2 became the storage version.
	flipped int64
	// early has the keys of the objects that were migrated when the test last interrupted the migration.
	early []string
}

func (g *geese) crd() string { return "geese." + g.group }

// values of the chart, by which the manager migrates the geese by itself.
func (g *geese) values() map[string]any {
	return map[string]any{"storageVersionMigrator": map[string]any{"scopes": []any{map[string]any{"group": g.group}}}}
}

// define makes the CRD with v1 alone, and objects.
func (s *stage) define(group string, objects int) *geese {
	s.t.Helper()
	g := &geese{s: s, group: group}
	if err := controlplane.InstallCRDs(s.t.Context(), s.Config(), g.definition(servedVersion("v1", true))); err != nil {
		s.t.Fatal(err)
	}
	g.fill(objects)
	return g
}

// definition is the CRD.
func (g *geese) definition(versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: g.crd(), Labels: map[string]string{crdmigrator.AutoMigrateLabel: crdmigrator.AutoMigrateValue}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: g.group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "geese", Kind: "Goose"},
			Versions: versions,
		},
	}
}

// fill makes objects at v1.
func (g *geese) fill(objects int) {
	g.s.t.Helper()
	if err := controlplane.AwaitServed(g.s.t.Context(), g.s.Config(), g.crd()); err != nil {
		g.s.t.Fatal(err)
	}
	for i := range objects {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"number": int64(i)}}}
		o.SetAPIVersion(g.group + "/v1")
		o.SetKind("Goose")
		o.SetNamespace(metav1.NamespaceDefault)
		o.SetName(fmt.Sprintf("goose-%d", i))
		if err := g.s.Create(g.s.t.Context(), o); err != nil {
			g.s.t.Fatal(err)
		}
	}
	g.written = g.read("v1")
}

func servedVersion(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: new(true),
		}},
	}
}

// read returns what the objects are, and that their content has not been written: the UID, the generation and the spec.
func (g *geese) read(version string) map[string]string {
	g.s.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(g.group + "/" + version)
	list.SetKind("GooseList")
	if err := g.s.List(g.s.t.Context(), list); err != nil {
		g.s.t.Fatal(err)
	}
	found := map[string]string{}
	for _, o := range list.Items {
		found[o.GetName()] = fmt.Sprintf("%s %d %v", o.GetUID(), o.GetGeneration(), o.Object["spec"])
	}
	return found
}

// flip makes v2 the storage version.
func (g *geese) flip() {
	g.s.t.Helper()
	_, err := controlplane.UpdateCRD(g.s.t.Context(), g.s.Config(), g.crd(), func(there *apiextensionsv1.CustomResourceDefinition) {
		there.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{servedVersion("v1", false), servedVersion("v2", true)}
	})
	if err != nil {
		g.s.t.Fatal(err)
	}
	g.noteFlip()
}

// noteFlip keeps the revision of the CRD, which has v2 as its storage version since its last change.
func (g *geese) noteFlip() {
	g.s.t.Helper()
	there, err := g.s.Etcd().Get(g.s.t.Context(), g.key())
	if err != nil || len(there.Kvs) != 1 {
		g.s.t.Fatalf("etcd has %d values of %s: %v", there.Count, g.crd(), err)
	}
	g.flipped = there.Kvs[0].ModRevision
}

// key of the CRD in etcd.
func (g *geese) key() string {
	return "/registry/apiextensions.k8s.io/customresourcedefinitions/" + g.crd()
}

// storedVersions returns status.storedVersions since the flip, each value once for as long as it lasts.
func (g *geese) storedVersions() []string {
	g.s.t.Helper()
	ctx, cancel := context.WithTimeout(g.s.t.Context(), process.StartTimeout)
	defer cancel()
	last, err := g.s.Etcd().Get(ctx, g.key())
	if err != nil || len(last.Kvs) != 1 {
		g.s.t.Fatalf("etcd has %d values of %s: %v", last.Count, g.crd(), err)
	}
	var all []string
	for changes := range g.s.Etcd().Watch(ctx, g.key(), clientv3.WithRev(g.flipped)) {
		if err := changes.Err(); err != nil {
			g.s.t.Fatalf("read the changes of %s since revision %d: %v", g.crd(), g.flipped, err)
		}
		for _, change := range changes.Events {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := json.Unmarshal(change.Kv.Value, crd); err != nil {
				g.s.t.Fatal(err)
			}
			if now := strings.Join(crd.Status.StoredVersions, ","); len(all) == 0 || all[len(all)-1] != now {
				all = append(all, now)
			}
			if change.Kv.ModRevision == last.Kvs[0].ModRevision {
				return all
			}
		}
	}
	g.s.t.Fatalf("the changes of %s end before revision %d", g.crd(), last.Kvs[0].ModRevision)
	return nil
}

// awaitMigrated waits until the manager says that the migration has succeeded, and proves it: etcd has each object at v2, the CRD
// stores v2 alone, and no object has another content.
func (g *geese) awaitMigrated() {
	g.s.t.Helper()
	g.s.await("the migration of "+g.crd()+" to succeed", func(ctx context.Context) error {
		m := &v1alpha1.CRDMigration{}
		if err := g.s.Get(ctx, client.ObjectKey{Name: g.crd()}, m); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != "Succeeded" {
			return fmt.Errorf("its status is %+v", m.Status)
		}
		return nil
	})
	g.expectMigrated()
}

func (g *geese) expectMigrated() {
	g.s.t.Helper()
	if done, err := g.migrated(g.s.t.Context()); err != nil || len(done) != len(g.written) {
		g.s.t.Errorf("%d of %d objects were written once after their creation: %v", len(done), len(g.written), err)
	}
	g.expectWrittenOnce()
	stored, err := g.s.CountStored(g.s.t.Context(), g.group, "geese")
	if err != nil || len(stored) != 1 || stored[g.group+"/v2"] != len(g.written) {
		g.s.t.Errorf("etcd has %v, want %d at v2: %v", stored, len(g.written), err)
	}
	if got, want := g.storedVersions(), []string{"v1,v2", "v2"}; !slices.Equal(got, want) {
		g.s.t.Errorf("storedVersions have been %q, want one trim: %q", got, want)
	}
	if now := g.read("v2"); !maps.Equal(now, g.written) {
		g.s.t.Errorf("objects are not what they were: %d now, %d before", len(now), len(g.written))
	}
}

// migrated returns the keys of the objects that etcd has written once after their creation.
func (g *geese) migrated(ctx context.Context) ([]string, error) {
	prefix := "/registry/" + g.group + "/geese/"
	all, err := g.s.Etcd().Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	var done []string
	for _, kv := range all.Kvs {
		if kv.Version == 2 {
			done = append(done, strings.TrimPrefix(string(kv.Key), prefix))
		}
	}
	return done, nil
}

// request is one in the audit log.
type request struct {
	Verb       string
	User       struct{ Username string }
	RequestURI string
	ObjectRef  struct{ APIGroup, Resource, Subresource, Namespace, Name string }

	ResponseStatus struct{ Code int }
	Annotations    map[string]string
}

// requests reads the audit log.
func (s *stage) requests() []request {
	s.t.Helper()
	log, err := os.ReadFile(s.auditLog)
	if err != nil {
		s.t.Fatal(err)
	}
	var all []request
	for line := range bytes.Lines(log) {
		var r request
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue // the API server is writing it
		}
		if err := json.Unmarshal(line, &r); err != nil {
			s.t.Fatalf("read the audit log: %v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// writes returns the status codes of all requests to write an object, by its key. Requests that only try are not among them.
func (g *geese) writes() map[string][]int {
	g.s.t.Helper()
	all := map[string][]int{}
	for _, r := range g.s.requests() {
		writes := r.Verb == "patch" || r.Verb == "update"
		if writes && r.ObjectRef.APIGroup == g.group && r.ObjectRef.Resource == "geese" && !strings.Contains(r.RequestURI, "dryRun=All") {
			key := r.ObjectRef.Namespace + "/" + r.ObjectRef.Name
			all[key] = append(all[key], r.ResponseStatus.Code)
		}
	}
	return all
}

// expectWrittenOnce fails unless one request has written each object, and unless it is the only one for an object that was migrated before
// an interruption: by its resourceVersion, the manager that resumes knows that it is. etcd does not show this, because the API server does
// not store an object that is as it was. Of a request whose answer the interruption has cost, a manager can't know whether it was carried
// out. It sends the request again, and the API server refuses it, because the resourceVersion is that of the list.
func (g *geese) expectWrittenOnce() {
	g.s.t.Helper()
	var several []string
	writes := g.writes()
	for key := range g.written {
		codes := writes[metav1.NamespaceDefault+"/"+key]
		written := 0
		for _, code := range codes {
			if code == http.StatusOK {
				written++
			}
		}
		if written != 1 || len(codes) > 1 && slices.Contains(g.early, metav1.NamespaceDefault+"/"+key) {
			several = append(several, fmt.Sprintf("%s %v", key, codes))
		}
	}
	if len(several) > 0 {
		g.s.t.Errorf("%d of %d objects, of which %d were migrated before the interruption, were not written by one request; first, with status codes: %q",
			len(several), len(g.written), len(g.early), several[:min(len(several), 5)])
	}
}

// expectToldOnce fails unless the conditions say that nothing is left to do, and the events that the migration has succeeded: once, and
// without a warning before. A manager that starts in the middle waits for the API servers again, and says so.
func (g *geese) expectToldOnce() {
	g.s.t.Helper()
	m := &v1alpha1.CRDMigration{}
	if err := g.s.Get(g.s.t.Context(), client.ObjectKey{Name: g.crd()}, m); err != nil {
		g.s.t.Fatal(err)
	}
	for _, condition := range m.Status.Conditions {
		if condition.Type != v1alpha1.ConditionReady && condition.Status != metav1.ConditionFalse {
			g.s.t.Errorf("condition %+v of %s remains", condition, m.Name)
		}
	}
	told := map[string]int{}
	var notes []string
	g.s.await("the event that the migration has succeeded", func(ctx context.Context) error {
		clear(told)
		notes = nil
		events := &eventsv1.EventList{}
		if err := g.s.List(ctx, events); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Kind == "CRDMigration" && e.Regarding.Name == m.Name {
				told[e.Type+" "+e.Reason]++
				notes = append(notes, e.Type+" "+e.Reason+": "+e.Note)
				if e.Series != nil {
					told[e.Type+" "+e.Reason] += int(e.Series.Count) - 1
				}
			}
		}
		if told["Normal Succeeded"] == 0 {
			return fmt.Errorf("events are %v", told)
		}
		return nil
	})
	settling := told["Normal Settling"]
	if want := map[string]int{"Normal Settling": settling, "Normal Succeeded": 1}; settling < 1 || settling > 2 || !maps.Equal(told, want) {
		g.s.t.Errorf("events of %s are %v, want one of Succeeded, and one or two of Settling:\n%s", m.Name, told, strings.Join(notes, "\n"))
	}
}

// tryUpdate updates an object by a dry run.
func (g *geese) tryUpdate(ctx context.Context) error {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(g.group + "/v2")
	o.SetKind("Goose")
	if err := g.s.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "goose-0"}, o); err != nil {
		return err
	}
	o.SetLabels(map[string]string{"tried": "yes"})
	return g.s.Update(ctx, o, client.DryRunAll)
}
