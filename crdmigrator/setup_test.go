package crdmigrator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func schemeWith(t *testing.T, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, f := range add {
		if err := f(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// otherConfigMap is a second Go type of one kind, as a second version has.
type otherConfigMap struct{ corev1.ConfigMap }

func addOtherConfigMap(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v2", Kind: "ConfigMap"}, &otherConfigMap{})
	return nil
}

func (o *otherConfigMap) DeepCopyObject() runtime.Object { return &otherConfigMap{*o.DeepCopy()} }

func TestSetupRefuses(t *testing.T) {
	scheme := schemeWith(t, apiextensionsv1.AddToScheme, corev1.AddToScheme)
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	for reason, test := range map[string]struct {
		migrator *CRDMigrator
		scheme   *runtime.Scheme
		refused  string // words that no other refusal has; empty means success
	}{
		"no client": {migrator: &CRDMigrator{APIReader: c, Selector: Selector{Group: "g"}}, refused: `both Client and APIReader`},
		"no reader": {migrator: &CRDMigrator{Client: c, Selector: Selector{Group: "g"}}, refused: `both Client and APIReader`},
		"neither Config nor Selector leaves nothing to do, which is a mistake of the caller": {
			migrator: &CRDMigrator{Client: c, APIReader: c}, refused: `one of Config and Selector`},
		"an empty Config is none": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Config: map[client.Object]ByObjectConfig{}}, refused: `one of Config and Selector`},
		"a phase that does not exist is a typo, and would run what was to be skipped": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Selector: Selector{Group: "g"}, SkipCRDMigrationPhases: []Phase{"storageversionmigration"}}, refused: `no such phase: "storageversionmigration" in SkipCRDMigrationPhases`},
		"a write that does not exist": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Selector: Selector{Group: "g"}, Write: "put"}, refused: `no such write: "put"`},
		"two Go types of one kind: which of them is meant would be left to chance": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Config: map[client.Object]ByObjectConfig{&corev1.ConfigMap{}: {}, &otherConfigMap{}: {}}},
			scheme:   schemeWith(t, apiextensionsv1.AddToScheme, corev1.AddToScheme, addOtherConfigMap), refused: `Config names it twice`},
		"an update goes to the object, never to /status": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Write: WriteUpdate,
				Config: map[client.Object]ByObjectConfig{&corev1.ConfigMap{}: {UseStatusForStorageVersionMigration: true}}}, refused: `does not go together with the write Update`},
		"a type that the scheme does not know has no kind": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Config: map[client.Object]ByObjectConfig{&corev1.ConfigMap{}: {}}},
			scheme:   schemeWith(t, apiextensionsv1.AddToScheme), refused: `find the kind of *v1.ConfigMap`},
		"without the type of CRDs, none can be read": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Config: map[client.Object]ByObjectConfig{&corev1.ConfigMap{}: {}}},
			scheme:   schemeWith(t, corev1.AddToScheme), refused: `does not know CustomResourceDefinitions`},
		"the cache has no list of metadata alone": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Config: map[client.Object]ByObjectConfig{&metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}}: {UseCache: true}}}, refused: `use the cache for Widget.example.com`},
		"an annotation that the API server would not take": {
			migrator: &CRDMigrator{Client: c, APIReader: c, Selector: Selector{Group: "g"}, ObservedGenerationAnnotation: "a/b/c"}, refused: `ObservedGenerationAnnotation "a/b/c"`},
		"kinds by Config":             {migrator: &CRDMigrator{Client: c, APIReader: c, Config: map[client.Object]ByObjectConfig{&corev1.ConfigMap{}: {UseCache: true}}}},
		"both phases may be skipped":  {migrator: &CRDMigrator{Client: c, APIReader: c, Selector: Selector{Group: "g"}, SkipCRDMigrationPhases: decision.Phases}},
		"UseStatus with a patch":      {migrator: &CRDMigrator{Client: c, APIReader: c, Config: map[client.Object]ByObjectConfig{&corev1.ConfigMap{}: {UseStatusForStorageVersionMigration: true}}}},
		"CRDs of every group":         {migrator: &CRDMigrator{Client: c, APIReader: c, Selector: Selector{LabelSelector: mustParse(t, "a=b")}}},
		"both, Config and a Selector": {migrator: &CRDMigrator{Client: c, APIReader: c, Selector: Selector{Group: "g"}, Config: map[client.Object]ByObjectConfig{&corev1.ConfigMap{}: {}}}},
	} {
		t.Run(reason, func(t *testing.T) {
			s := test.scheme
			if s == nil {
				s = scheme
			}
			switch err := test.migrator.setup(s, &rest.Config{}); {
			case test.refused == "" && err != nil:
				t.Errorf("setup: %v, want success", err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("setup: %v, want an error with %q", err, test.refused)
			}
		})
	}
}

func TestConfiguredWrite(t *testing.T) {
	status := ByObjectConfig{UseStatusForStorageVersionMigration: true}
	for _, test := range []struct {
		write Write
		by    ByObjectConfig
		want  Write
		ok    bool
	}{
		{WritePatch, ByObjectConfig{}, WritePatch, true},
		{WriteUpdate, ByObjectConfig{}, WriteUpdate, true},
		{WritePatch, status, WriteStatusPatch, true},
		{WriteStatusPatch, status, WriteStatusPatch, true},
		{WriteApply, status, WriteStatusApply, true},
		{WriteStatusApply, status, WriteStatusApply, true},
		{WriteUpdate, status, "", false},
	} {
		got, err := configuredWrite(test.write, test.by)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("%s with %+v: %q, %v; want %q", test.write, test.by, got, err, test.want)
		}
	}
}

func TestOnlyRealChangesPass(t *testing.T) {
	crd := func(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "2", Generation: 1, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{CheckpointAnnotation: "{}"},
		}}
		change(o)
		return o
	}
	checkpoint := func(o *metav1.PartialObjectMetadata) { o.Annotations[CheckpointAnnotation] = "{1}" }
	for reason, test := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"a resync brings the same object again": {func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "1" }, false},
		"storedVersions were restored from a backup: metadata shows nothing but a new resourceVersion": {
			func(*metav1.PartialObjectMetadata) {}, true},
		"a checkpoint is saved while a run continues": {checkpoint, false},
		"a checkpoint is removed before the trim":     {func(o *metav1.PartialObjectMetadata) { delete(o.Annotations, CheckpointAnnotation) }, false},
		"GitOps takes all annotations away":           {func(o *metav1.PartialObjectMetadata) { o.Annotations = nil }, false},
		"a checkpoint and a new spec in one event":    {func(o *metav1.PartialObjectMetadata) { checkpoint(o); o.Generation = 2 }, true},
		"a checkpoint and a label in one event":       {func(o *metav1.PartialObjectMetadata) { checkpoint(o); o.Labels = nil }, true},
		"a checkpoint and an annotation in one event": {func(o *metav1.PartialObjectMetadata) { checkpoint(o); o.Annotations["c"] = "d" }, true},
	} {
		before := crd(func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "1" })
		if got := changed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: crd(test.change)}); got != test.want {
			t.Errorf("%s: %v, want %v", reason, got, test.want)
		}
	}
}
