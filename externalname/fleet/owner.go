package fleet

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owner is the field manager that has written the external name, according to metadata.managedFields.
type Owner struct {
	// Manager is empty if no entry has the annotation.
	Manager string
	// Source means that the manager applies the name repeatedly from a source and would overwrite a change of the
	// object: a GitOps tool, a Composition, or another client of server-side apply.
	Source bool
	// Composite is the composite resource of a Composition; empty without one.
	Composite string
}

// gitOps are prefixes of the field managers of tools that apply manifests from a repository.
var gitOps = []string{
	"argocd", "argo-cd", "config-sync", "configsync", "fleetagent", "fleet-agent", "flux", "helm", "kapp", "kluctl", "kustomize-controller", "rancher",
}

// kubectlApply are the field managers of `kubectl apply`. They are not a source: the user can apply the new name.
var kubectlApply = []string{"kubectl", "kubectl-client-side-apply", "kubectl-last-applied"}

// composing is the prefix of the field managers of Compositions.
const composing = "apiextensions.crossplane.io/compos"

// ownerOf returns the owner of the name. If several managers own the annotation, a source takes precedence. sources are
// further field managers that apply manifests.
func ownerOf(o *unstructured.Unstructured, sources []string) Owner {
	return owner(o, sources, ownsName)
}

// policiesOwner returns the owner of spec.managementPolicies.
func policiesOwner(o *unstructured.Unstructured, sources []string) Owner {
	return owner(o, sources, ownsPolicies)
}

func owner(o *unstructured.Unstructured, sources []string, owns func(metav1.ManagedFieldsEntry) bool) Owner {
	var found []Owner
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource != "" || !owns(entry) {
			continue
		}
		found = append(found, ownerBy(o, entry, sources))
	}
	if at := slices.IndexFunc(found, func(one Owner) bool { return one.Source }); at >= 0 {
		return found[at]
	}
	if len(found) == 0 {
		return Owner{}
	}
	return found[len(found)-1]
}

func ownerBy(o *unstructured.Unstructured, entry metav1.ManagedFieldsEntry, sources []string) Owner {
	manager := entry.Manager
	owner := Owner{Manager: manager}
	composite := o.GetLabels()[labelComposite]
	named := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(manager), prefix) }
	switch {
	case named(composing), composite != "" && named("crossplane"):
		owner.Source, owner.Composite = true, composite
	case slices.ContainsFunc(gitOps, named), slices.Contains(sources, manager):
		owner.Source = true
	case entry.Operation == metav1.ManagedFieldsOperationApply:
		owner.Source = !slices.Contains(kubectlApply, manager) && !named("godwit")
	}
	return owner
}

// owned are the fields of an entry that this package asks for.
type owned struct {
	Metadata struct {
		Annotations map[string]json.RawMessage `json:"f:annotations"`
	} `json:"f:metadata"`
	Spec map[string]json.RawMessage `json:"f:spec"`
}

// ownsName reports whether an entry has the annotation of the external name.
func ownsName(entry metav1.ManagedFieldsEntry) bool {
	_, owns := ownedBy(entry).Metadata.Annotations["f:"+annotationName]
	return owns
}

func ownsPolicies(entry metav1.ManagedFieldsEntry) bool {
	_, owns := ownedBy(entry).Spec["f:managementPolicies"]
	return owns
}

func ownedBy(entry metav1.ManagedFieldsEntry) (fields owned) {
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return owned{}
	}
	return fields
}
