package fleet

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owner is the field manager that has written the external name, by metadata.managedFields.
type Owner struct {
	// Manager is empty where no entry has the annotation.
	Manager string
	// Source means that the manager applies the name again from a source, so that a write to the object
	// does not last: a GitOps tool, a Composition, or another client of server-side apply.
	Source bool
	// Composite is the composite resource of a Composition; empty without one.
	Composite string
}

// gitOps are field managers of tools that apply manifests from a repository, each by its prefix.
var gitOps = []string{
	"argocd", "argo-cd", "config-sync", "configsync", "fleetagent", "fleet-agent", "flux", "helm", "kapp", "kluctl", "kustomize-controller", "rancher",
}

// kubectlApply are the managers of `kubectl apply`. A user runs it, and may run it with the new name.
var kubectlApply = []string{"kubectl", "kubectl-client-side-apply", "kubectl-last-applied"}

// composing begins the field manager of a Composition's resources.
const composing = "apiextensions.crossplane.io/compos"

// ownerOf finds the owner. Where several managers own the annotation, a source comes first. Sources are
// further field managers that apply manifests.
func ownerOf(o *unstructured.Unstructured, sources []string) Owner {
	var found []Owner
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource != "" || !ownsName(entry) {
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

// ownsName reports whether an entry has the annotation of the external name.
func ownsName(entry metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	_, owns := fields.Metadata.Annotations["f:"+annotationName]
	return owns
}
