package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/internal/managed"
)

const (
	ownsNameFields    = `{"f:metadata":{"f:annotations":{"f:crossplane.io/external-name":{}}}}`
	ownsSpecFields    = `{"f:spec":{"f:forProvider":{"f:org":{}}}}`
	ownsAppliedFields = `{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}},"f:spec":{}}`
	appliedName       = `{"metadata":{"annotations":{"crossplane.io/external-name":"a"}}}`
	appliedNoName     = `{"metadata":{"annotations":{}}}`
)

func TestOwner(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, after time.Duration, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(created.Add(after))
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	const composed = "apiextensions.crossplane.io/composed/1f"
	provider := func(after time.Duration) metav1.ManagedFieldsEntry {
		return entry("provider", update, after, ownsNameFields)
	}
	for reason, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		applied string
		want    Owner
	}{
		"nothing is known":                      {nil, "", Owner{}},
		"the provider":                          {[]metav1.ManagedFieldsEntry{provider(0)}, "", Owner{Manager: "provider"}},
		"the Composition, with the same name":   {[]metav1.ManagedFieldsEntry{entry(composed, apply, 0, ownsNameFields), provider(time.Hour)}, "", Owner{composed, true, "team"}},
		"a Composition that has no name":        {[]metav1.ManagedFieldsEntry{entry(composed, apply, 2*time.Hour, ownsSpecFields), provider(0)}, "", Owner{Manager: "provider"}},
		"the provider and a Composition":        {[]metav1.ManagedFieldsEntry{entry(composed, apply, 2*time.Hour, ownsSpecFields), provider(2*time.Hour + time.Minute)}, "", Owner{composed, true, "team"}},
		"at the creation, both write at once":   {[]metav1.ManagedFieldsEntry{entry(composed, apply, 0, ownsSpecFields), provider(time.Minute)}, "", Owner{Manager: "provider"}},
		"Git has the name, the provider writes": {[]metav1.ManagedFieldsEntry{entry("argocd-controller", update, 0, ownsAppliedFields), provider(2 * time.Hour)}, appliedName, Owner{Manager: "argocd-controller", Source: true}},
		"Git has no name":                       {[]metav1.ManagedFieldsEntry{entry("argocd-controller", update, 0, ownsAppliedFields), provider(2 * time.Hour)}, appliedNoName, Owner{Manager: "provider"}},
		"a user has applied the name":           {[]metav1.ManagedFieldsEntry{entry("kubectl-client-side-apply", update, 0, ownsAppliedFields), provider(2 * time.Hour)}, appliedName, Owner{Manager: "provider"}},
		"Godwit has renamed it":                 {[]metav1.ManagedFieldsEntry{entry(composed, apply, 2*time.Hour, ownsSpecFields), entry("godwit", update, 2*time.Hour, ownsNameFields)}, "", Owner{Manager: "godwit"}},
		"a provider that is named after it":     {[]metav1.ManagedFieldsEntry{entry("crossplane-sql-provider", update, 0, ownsNameFields)}, "", Owner{Manager: "crossplane-sql-provider"}},
	} {
		t.Run(reason, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{}}
			o.SetCreationTimestamp(metav1.NewTime(created))
			o.SetLabels(map[string]string{managed.LabelComposite: "team"})
			o.SetManagedFields(test.entries)
			if test.applied != "" {
				o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": test.applied})
			}
			if got := OwnerOf(o); got != test.want {
				t.Errorf("it is %+v, want %+v", got, test.want)
			}
		})
	}
}
