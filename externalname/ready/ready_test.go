package ready_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/ready"
)

const generation = 3

// observed is an object whose spec is as the external resource is.
func observed() *unstructured.Unstructured {
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "observedGeneration": int64(generation), "message": "message of " + kind}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ldap.example.org/v1", "kind": "Person",
		"metadata": map[string]any{
			"name": "jane", "namespace": "people", "generation": int64(generation),
			"annotations": map[string]any{ready.AnnotationExternalName: "A ", ready.AnnotationBoundName: "a"},
		},
		"spec":   map[string]any{"managementPolicies": []any{"Observe"}},
		"status": map[string]any{"conditions": []any{condition("Synced", "True"), condition("Ready", "True"), condition("Drift", "False")}},
	}}
}

func setCondition(o *unstructured.Unstructured, kind, field string, value any) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == kind {
			c[field] = value
			_ = unstructured.SetNestedSlice(o.Object, list, "status", "conditions")
			return
		}
	}
	_ = unstructured.SetNestedSlice(o.Object, append(list, map[string]any{"type": kind, field: value, "observedGeneration": int64(generation)}), "status", "conditions")
}

func annotate(o *unstructured.Unstructured, key, value string) {
	annotations := o.GetAnnotations()
	annotations[key] = value
	o.SetAnnotations(annotations)
}

// What is not known is never ready.
func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   *godwit.Reason
	}{
		"in sync":                          {func(*unstructured.Unstructured) {}, ready.NoDifference},
		"differs":                          {func(o *unstructured.Unstructured) { setCondition(o, "Drift", "status", "True") }, ready.Differs},
		"updated and not read since":       {func(o *unstructured.Unstructured) { setCondition(o, "Drift", "status", "Unknown") }, ready.NotCompared},
		"the spec has changed since":       {func(o *unstructured.Unstructured) { o.SetGeneration(generation + 1) }, ready.NotCompared},
		"a condition without a generation": {func(o *unstructured.Unstructured) { setCondition(o, "Drift", "observedGeneration", int64(0)) }, ready.NotCompared},
		"no status":                        {func(o *unstructured.Unstructured) { delete(o.Object, "status") }, ready.NotCompared},
		"a status of another form":         {func(o *unstructured.Unstructured) { o.Object["status"] = "x" }, ready.NotCompared},
		"not synced":                       {func(o *unstructured.Unstructured) { setCondition(o, "Synced", "status", "False") }, ready.NotSynced},
		"never found":                      {func(o *unstructured.Unstructured) { annotate(o, ready.AnnotationBoundName, "") }, ready.NoName},
		"the name has changed since":       {func(o *unstructured.Unstructured) { annotate(o, ready.AnnotationExternalName, "b") }, ready.NotCompared},
		"two objects have the name":        {func(o *unstructured.Unstructured) { setCondition(o, "UniqueExternalName", "status", "False") }, ready.SharedName},
		"can't be used":                    {func(o *unstructured.Unstructured) { setCondition(o, "Ready", "status", "False") }, ready.NotReady},
		"paused":                           {func(o *unstructured.Unstructured) { annotate(o, ready.AnnotationPaused, "true") }, ready.Paused},
		"deleting": {func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, time.Now().Format(time.RFC3339), "metadata", "deletionTimestamp")
		}, ready.Deleting},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed()
			c.change(o)
			d := ready.Decide(o)
			if d.Reason != c.want || d.Ready != (c.want == ready.NoDifference) || d.Ready == (d.Command == "") || d.Message == "" {
				t.Errorf("decision is %+v, want %s", d, c.want)
			}
		})
	}
}

func TestObservesOnly(t *testing.T) {
	for policies, want := range map[string]bool{"Observe": true, "*": false, "": false} {
		o := observed()
		_ = unstructured.SetNestedStringSlice(o.Object, []string{policies}, "spec", "managementPolicies")
		if ready.ObservesOnly(o) != want {
			t.Errorf("%q: %t", policies, !want)
		}
	}
	o := observed()
	_ = unstructured.SetNestedStringSlice(o.Object, []string{"Observe", "Update"}, "spec", "managementPolicies")
	if ready.ObservesOnly(o) {
		t.Error("an object that is updated does not only observe")
	}
}

func TestCommand(t *testing.T) {
	const want = `kubectl patch person.ldap.example.org jane -n people --type=merge -p '{"spec":{"managementPolicies":["*"]}}'`
	if got := ready.Decide(observed()).Command; got != want {
		t.Errorf("command is %q", got)
	}
}
