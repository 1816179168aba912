package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/handover"
	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/internal/fixtest"
)

var (
	now     = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	created = now.Add(-48 * time.Hour)
	buckets = fleet.Kind{Resource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "buckets"}, Kind: "Bucket"}
)

func at(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339) }

type annotations = map[string]string

// object is a managed resource as an API server returns it.
func object(name string, a annotations, writers ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Bucket", "spec": map[string]any{"forProvider": map[string]any{"region": "eu"}}}}
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetAnnotations(a)
	o.SetCreationTimestamp(metav1.NewTime(created))
	o.SetManagedFields(writers)
	return o
}

func deleted(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetDeletionTimestamp(new(metav1.NewTime(now)))
	return o
}

// writes is an entry of managedFields: annotations without their domain, and "spec".
func writes(manager string, operation metav1.ManagedFieldsOperationType, ago time.Duration, fields ...string) metav1.ManagedFieldsEntry {
	when := metav1.NewTime(now.Add(-ago))
	owned, spec := []string{}, ""
	for _, f := range fields {
		if f == "spec" {
			spec = `,"f:spec":{"f:forProvider":{}}`
			continue
		}
		owned = append(owned, fmt.Sprintf(`"f:crossplane.io/%s":{}`, f))
	}
	text := fmt.Sprintf(`{"f:metadata":{"f:annotations":{%s}}%s}`, strings.Join(owned, ","), spec)
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Time: &when, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(text)}
}

const (
	update   = metav1.ManagedFieldsOperationUpdate
	apply    = metav1.ManagedFieldsOperationApply
	composed = "apiextensions.crossplane.io/composed/1f"
)

// reasons are "Severity Reason" for each finding.
func reasons(found []Finding) []string {
	all := []string{}
	for _, f := range found {
		all = append(all, f.Name+" "+f.Severity.String()+" "+f.Reason.Name)
	}
	return all
}

// check says that each fix is that of its reason, and deletes nothing.
func check(t *testing.T, found []Finding) {
	t.Helper()
	for _, f := range found {
		if err := fixtest.Check(f.Finding); err != nil {
			t.Error(err)
		}
		if f.Message == "" || len(f.Fix) == 0 {
			t.Errorf("%s has no message or no fix: %+v", f.Name, f)
		}
		for _, a := range f.Fix.Actions() {
			if _, deletes := a.(godwit.Delete); deletes || strings.Contains(f.Fix.String(), "delete") {
				t.Errorf("the fix of %s deletes: %s", f.Reason, f.Fix)
			}
		}
	}
}

func TestDecideOne(t *testing.T) {
	const pausedKey, applied = evidence.AnnotationPaused, "kubectl.kubernetes.io/last-applied-configuration"
	provider := writes("provider", update, 47*time.Hour, "external-name", "external-create-succeeded")
	for reason, test := range map[string]struct {
		object    *unstructured.Unstructured
		creations int64
		want      []string
	}{
		"nothing was created":  {object("a", nil), 0, nil},
		"created with a name":  {object("a", annotations{evidence.AnnotationName: "x", evidence.AnnotationSucceeded: at(47 * time.Hour)}, provider), 1, nil},
		"the name is lost":     {object("a", annotations{evidence.AnnotationSucceeded: at(time.Hour)}), 0, []string{"a Blocks NameLost"}},
		"seen, and lost":       {object("a", annotations{evidence.AnnotationBound: "x", pausedKey: "true"}), 0, []string{"a Blocks NameLost"}},
		"a creation is begun":  {object("a", annotations{evidence.AnnotationPending: at(time.Minute)}), 0, nil},
		"a creation hangs":     {object("a", annotations{evidence.AnnotationPending: at(time.Hour)}), 0, []string{"a Blocks CreateIncomplete"}},
		"lost, and it hangs":   {object("a", annotations{evidence.AnnotationSucceeded: at(2 * time.Hour), evidence.AnnotationPending: at(time.Hour)}), 0, []string{"a Blocks CreateIncomplete"}},
		"lost, and begun anew": {object("a", annotations{evidence.AnnotationSucceeded: at(2 * time.Hour), evidence.AnnotationPending: at(time.Second)}), 0, []string{"a Blocks NameLost"}},
		"created twice":        {object("a", annotations{evidence.AnnotationName: "x", evidence.AnnotationSucceeded: at(time.Hour)}, provider), 2, []string{"a Warns CreatedTwice"}},
		"an operation failed":  {object("a", annotations{evidence.AnnotationOperation: "op"}), 2, nil},
		"created after a user wrote a name": {object("a", annotations{evidence.AnnotationName: "x", evidence.AnnotationSucceeded: at(time.Hour)},
			writes("kubectl-annotate", update, 2*time.Hour, "external-name"), writes("provider", update, time.Hour, "external-create-succeeded")), 1, []string{"a Warns CreatedTwice"}},
		"named in its manifest, and created": {object("a", annotations{evidence.AnnotationName: "x", evidence.AnnotationSucceeded: at(time.Hour)},
			writes("kubectl-create", update, 48*time.Hour, "external-name", "spec"), writes("provider", update, time.Hour, "external-create-succeeded")), 1, nil},
		"named after it was created": {object("a", annotations{evidence.AnnotationName: "x", evidence.AnnotationSucceeded: at(2 * time.Hour)},
			writes("kubectl-annotate", update, time.Hour, "external-name"), writes("provider", update, 2*time.Hour, "external-create-succeeded")), 1, nil},
		"the manifest has another name":                    {object("a", annotations{evidence.AnnotationName: "x", applied: `{"metadata":{"annotations":{"crossplane.io/external-name":"y"}}}`}), 0, []string{"a Blocks NameContested"}},
		"the manifest has the name":                        {object("a", annotations{evidence.AnnotationName: "x", applied: `{"metadata":{"annotations":{"crossplane.io/external-name":"x"}}}`}), 0, nil},
		"the manifest has no name":                         {object("a", annotations{evidence.AnnotationName: "x", applied: `{"metadata":{}}`}), 0, nil},
		"a Composition names it, and it was created twice": {object("a", annotations{evidence.AnnotationName: "x"}, writes(composed, apply, time.Hour, "external-name", "spec")), 2, []string{"a Warns NameContested"}},
		"a Composition names it":                           {object("a", annotations{evidence.AnnotationName: "x"}, writes(composed, apply, time.Hour, "external-name", "spec"), writes("provider", update, time.Hour, "external-create-succeeded")), 1, nil},
		"a Composition and the provider write in turns":    {object("a", annotations{evidence.AnnotationName: "x"}, writes(composed, apply, time.Hour, "spec"), writes("provider", update, 59*time.Minute, "external-name")), 0, []string{"a Warns NameContested"}},
		"a Composition has written other fields":           {object("a", annotations{evidence.AnnotationName: "x"}, writes(composed, apply, time.Hour, "spec"), provider), 0, nil},
		"paused by Godwit":                                 {object("a", annotations{pausedKey: "true"}, writes("godwit", update, time.Second, "paused")), 0, []string{"a Warns PausedLeftover"}},
		"paused by a user since an hour":                   {object("a", annotations{pausedKey: "true"}, writes("kubectl-annotate", update, time.Hour, "paused")), 0, nil},
		"paused by a user since two days":                  {object("a", annotations{pausedKey: "true"}, writes("kubectl-annotate", update, 47*time.Hour, "paused")), 0, []string{"a Warns PausedLeftover"}},
		"paused while it is lost":                          {object("a", annotations{pausedKey: "true", evidence.AnnotationSucceeded: at(time.Hour)}, writes("kubectl-annotate", update, 47*time.Hour, "paused")), 0, []string{"a Blocks NameLost"}},
		"deleted while it is paused":                       {deleted(object("a", annotations{pausedKey: "true", evidence.AnnotationName: "x"})), 0, []string{"a Warns PausedLeftover"}},
		"a renaming has not ended":                         {object("a", annotations{pausedKey: "true", evidence.AnnotationName: "x", fleet.AnnotationJournal: `{"format":1,"phase":"Pausing","from":"x","to":"y"}`}, writes("godwit", update, time.Hour, "paused")), 0, []string{"a Warns RenamingInterrupted"}},
		"a handover has not ended":                         {object("a", annotations{pausedKey: "true", evidence.AnnotationName: "x", handover.AnnotationHandover: `{"format":1,"phase":"Pausing","other":{"resource":"buckets.m.example.org","name":"a"},"name":"x","policies":["*"]}`}, writes("godwit", update, time.Hour, "paused")), 0, []string{"a Warns HandoverInterrupted"}},
		"a handover was undone":                            {object("a", annotations{pausedKey: "true", evidence.AnnotationBound: "x", handover.AnnotationHandover: `{"format":1,"phase":"Returned","other":{"resource":"buckets.example.org","name":"a"},"name":null,"policies":["*"]}`}, writes("godwit", update, time.Hour, "paused")), 0, []string{"a Warns HandoverReturned"}},
		"it is handed over":                                {object("a", annotations{evidence.AnnotationName: "x", handover.AnnotationHandover: `{"format":1,"phase":"Released","other":{"resource":"buckets.m.example.org","name":"a"},"name":"x","policies":["*"]}`}), 0, nil},
		"the handover can't be read":                       {object("a", annotations{handover.AnnotationHandover: "?"}), 0, []string{"a Blocks HandoverUnreadable"}},
		"the journal can't be read":                        {object("a", annotations{fleet.AnnotationJournal: "?"}), 0, []string{"a Blocks JournalUnreadable"}},
	} {
		t.Run(reason, func(t *testing.T) {
			f := FactOf(buckets, test.object)
			f.Creations = Creations{Count: test.creations, First: now.Add(-time.Hour)}
			found := Decide([]Fact{f}, Options{Now: now})
			if diff := cmp.Diff(test.want, append([]string(nil), reasons(found)...)); diff != "" {
				t.Error(diff)
			}
			check(t, found)
		})
	}
}

// Managed resources that share an external resource are named together, and only those that write it are duplicates.
func TestDecideShared(t *testing.T) {
	named := func(name, external string, change ...func(*unstructured.Unstructured)) Fact {
		o := object(name, annotations{evidence.AnnotationName: external})
		for _, c := range change {
			c(o)
		}
		return FactOf(buckets, o)
	}
	observes := func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(o.Object, []string{"Observe"}, "spec", "managementPolicies")
	}
	pauses := func(o *unstructured.Unstructured) {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{writes("kubectl-annotate", update, 47*time.Hour, "paused")})
		o.SetAnnotations(annotations{evidence.AnnotationName: o.GetAnnotations()[evidence.AnnotationName], evidence.AnnotationPaused: "true"})
	}
	size := func(size string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, size, "spec", "forProvider", "size")
		}
	}
	for reason, test := range map[string]struct {
		facts []Fact
		want  []string
	}{
		"different names":        {[]Fact{named("a", "x"), named("b", "y")}, nil},
		"one name":               {[]Fact{named("b", "x"), named("a", "x")}, []string{"a Blocks Duplicate", "b Blocks Duplicate"}},
		"one of them observes":   {[]Fact{named("a", "x"), named("b", "x", observes)}, nil},
		"one of them is paused":  {[]Fact{named("a", "x"), named("b", "x", pauses)}, []string{"a Warns MaybeShared", "b Warns MaybeShared"}},
		"two sizes":              {[]Fact{named("a", "x", size("s")), named("b", "x", size("l"))}, []string{"a Warns MaybeShared", "b Warns MaybeShared"}},
		"two alike, one differs": {[]Fact{named("a", "x", size("s")), named("b", "x", size("s")), named("c", "x", size("l"))}, []string{"a Blocks Duplicate", "b Blocks Duplicate", "c Warns MaybeShared"}},
	} {
		t.Run(reason, func(t *testing.T) {
			found := Decide(test.facts, Options{Now: now})
			if diff := cmp.Diff(test.want, append([]string(nil), reasons(found)...)); diff != "" {
				t.Error(diff)
			}
			check(t, found)
			for _, f := range found {
				if len(f.With) == 0 || !strings.Contains(f.Message, f.With[0]) {
					t.Errorf("%s is named with %v: %s", f.Name, f.With, f.Message)
				}
			}
		})
	}
}
