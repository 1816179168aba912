package fieldmigration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

var resource = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "databases"}

func TestPolicy(t *testing.T) {
	policy, binding, err := steps.Policy("databases", resource)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range policy.Spec.Mutations {
		got = append(got, m.JSONPatch.Expression)
	}
	want := []string{
		`!has(object.spec.forProvider.region) ? [JSONPatch{op: "add", path: "/spec/forProvider/region", value: "eu1"}] : []`,
		`has(object.spec.forProvider.name) ? !has(object.spec.forProvider.title) ? [JSONPatch{op: "add", path: "/spec/forProvider/title", value: object.spec.forProvider.name}] : [] : []`,
		`has(object.spec.forProvider.size) ? (!has(object.spec.forProvider.disk) ? [JSONPatch{op: "add", path: "/spec/forProvider/disk", value: {"sizeGB": object.spec.forProvider.size}}]` +
			` : [JSONPatch{op: "add", path: "/spec/forProvider/disk/sizeGB", value: object.spec.forProvider.size}]) + [JSONPatch{op: "remove", path: "/spec/forProvider/size"}] : []`,
		`!has(object.spec.forProvider.disk) ? [JSONPatch{op: "add", path: "/spec/forProvider/disk", value: {"classes": [dyn("ssd"), dyn(2)]}}]` +
			` : !has(object.spec.forProvider.disk.classes) ? [JSONPatch{op: "add", path: "/spec/forProvider/disk/classes", value: [dyn("ssd"), dyn(2)]}] : []`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("expressions (-want +got):\n%s", diff)
	}
	if got, want := policy.Spec.MatchConditions[0].Expression, "has(object.spec) && has(object.spec.forProvider)"; got != want {
		t.Errorf("objects without fields: %s, want %s", got, want)
	}
	if binding.Spec.PolicyName != policy.Name {
		t.Errorf("the binding names %q, want %q", binding.Spec.PolicyName, policy.Name)
	}
}

// What CEL can't name is refused when the policy is made, and not by an API server.
func TestPolicyRefusesNames(t *testing.T) {
	for name, step := range map[string]fieldmigration.Step{
		"a hyphen":      fieldmigration.Default("storage-class", "ssd"),
		"a reserved":    fieldmigration.Copy("namespace", "project"),
		"an escape":     fieldmigration.Move("a", "b__dash__c"),
		"an empty name": fieldmigration.Default("disk..size", 1),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := fieldmigration.Steps{Steps: []fieldmigration.Step{step}}.Policy("p", resource)
			if err == nil || !strings.Contains(err.Error(), "webhook") {
				t.Errorf("error %v, want one that names the webhook", err)
			}
		})
	}
	_, _, err := fieldmigration.Steps{Path: "spec.for-provider"}.Policy("p", resource)
	if err == nil {
		t.Error("a path that CEL can't name is accepted")
	}
}

func TestStepsThatHaveNoMeaningPanic(t *testing.T) {
	for name, step := range map[string]func() fieldmigration.Step{
		"into itself": func() fieldmigration.Step { return fieldmigration.Move("disk", "disk.size") },
		"onto itself": func() fieldmigration.Step { return fieldmigration.Copy("disk", "disk") },
		"not JSON":    func() fieldmigration.Step { return fieldmigration.Default("disk", make(chan int)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			step()
		})
	}
}
