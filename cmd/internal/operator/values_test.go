package operator

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	storagedecision "github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// TestManagerBlocksWhatLosesValues: the storage version lacks a field that an object has. The condition Blocked and the blockers name
// it, and nothing is written, until spec.acceptLosses has the path. Then the status says how each value was proven.
func TestManagerBlocksWhatLosesValues(t *testing.T) {
	c := newCluster(t)
	name := c.define("swans", 3, nil)
	rich := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": "white"}}}
	rich.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: "v1", Kind: "Swan"})
	rich.SetName("o-rich")
	if err := c.Create(t.Context(), rich); err != nil {
		t.Fatal(err)
	}
	poor := version("v2", true, true)
	poor.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object"}
	_, err := controlplane.UpdateCRD(t.Context(), c.plane.Config(), name, func(there *apiextensionsv1.CustomResourceDefinition) {
		there.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, false), poor}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	c.manage("storageVersionMigrator: {scopes: [{group: none.example.com, labelSelector: {matchLabels: {migrate: never}}}], defaults: {settle: 0s}}")
	m := c.awaitReason(name, storagedecision.ReasonBlocked.Name)
	blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
	const message = "drops values of objects: spec (1 object, such as o-rich)"
	if blocked == nil || blocked.Reason != storagedecision.ReasonFieldsWouldBeLost.Name || len(m.Status.Blockers) != 1 {
		t.Fatalf("condition %+v, blockers %+v, want FieldsWouldBeLost", blocked, m.Status.Blockers)
	}
	const remedy = `kubectl patch crdmigration swans.` // as below
	if b := m.Status.Blockers[0]; !strings.Contains(b.Message, message) || !strings.Contains(b.Remedy, remedy) || !strings.Contains(b.Remedy, `"acceptLosses": ["spec"]`) {
		t.Errorf("blocker %+v, want %q and %q", b, message, remedy)
	}
	c.mustBeStored(name, map[string]int{"v1": 4})

	m.Spec.AcceptLosses = []string{"spec"}
	if err := c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m = c.awaitReason(name, storagedecision.ReasonSucceeded.Name)
	c.mustBeStored(name, map[string]int{"v2": 4})
	proof := m.Status.Values
	if proof == nil || proof.ProvenBy != string(evidence.ByRoundTrips) || proof.Objects != 4 || len(proof.Accepted) != 1 || proof.Accepted[0] != (v1alpha1.ValueLoss{Path: "spec", Objects: 1}) {
		t.Errorf("status.values: %+v, want round trips of 4 objects, with spec of one given up", proof)
	}
}

// TestManagerBlocksWhatAdmissionChanges: a policy would change each object that a migration writes. The blocker names the path, and
// nothing is written, until spec.acceptChanges has it.
func TestManagerBlocksWhatAdmissionChanges(t *testing.T) {
	c := newCluster(t)
	name := c.define("terns", 3, nil)
	c.paint("terns", `[JSONPatch{op: "add", path: "/metadata/labels", value: {"painted": "yes"}}]`)
	c.flip(name)
	if err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	c.manage("storageVersionMigrator: {scopes: [{group: none.example.com, labelSelector: {matchLabels: {migrate: never}}}], defaults: {settle: 0s}}")
	m := c.awaitReason(name, storagedecision.ReasonBlocked.Name)
	if len(m.Status.Blockers) != 1 || m.Status.Blockers[0].Reason != storagedecision.ReasonAdmissionMutates.Name {
		t.Fatalf("blockers %+v, want AdmissionMutates", m.Status.Blockers)
	}
	b := m.Status.Blockers[0]
	for _, part := range []string{"metadata.labels", "by MutatingAdmissionPolicy paint-terns"} {
		if !strings.Contains(b.Message, part) {
			t.Errorf("blocker %q, want %q", b.Message, part)
		}
	}
	if want := "kubectl patch crdmigration " + name + ` --type=merge -p '{"spec": {"acceptChanges": ["metadata.labels"]}}'`; !strings.Contains(b.Remedy, want) {
		t.Errorf("remedy %q, want %q", b.Remedy, want)
	}
	c.mustBeStored(name, map[string]int{"v1": 3})

	c.patch(name, `{"spec": {"acceptChanges": ["metadata.labels"]}}`)
	c.awaitReason(name, storagedecision.ReasonSucceeded.Name)
	c.mustBeStored(name, map[string]int{"v2": 3})
}

// paint has a policy change each object of a resource that is updated, and waits until it does.
func (c *cluster) paint(plural, expression string) {
	c.t.Helper()
	clients, err := kubernetes.NewForConfig(c.plane.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	api, name := clients.AdmissionregistrationV1(), "paint-"+plural
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{c.group}, APIVersions: []string{"*"}, Resources: []string{plural}},
			}}}},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: expression}}},
		},
	}
	if _, err := api.MutatingAdmissionPolicies().Create(c.t.Context(), policy, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	if _, err := api.MutatingAdmissionPolicyBindings().Create(c.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.await("the policy to change objects", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: "v1", Kind: "TernList"})
		if err := c.List(c.t.Context(), list); err != nil || len(list.Items) == 0 {
			return false
		}
		o := &list.Items[0]
		err := c.Patch(c.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{}`)), client.DryRunAll)
		return err == nil && o.GetLabels()["painted"] == "yes"
	})
}
