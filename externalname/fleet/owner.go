package fleet

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/kube"
)

// Owner is the field manager that writes the external name, according to metadata.managedFields and the manifest of the last
// client-side apply.
type Owner struct {
	// Manager is empty if no entry has the annotation.
	Manager string
	// Source means that the manager applies the name repeatedly from a source and would overwrite a change of the
	// object: a GitOps tool, a Composition, or another client of server-side apply.
	Source bool
	// Composite is the composite resource of a Composition; empty without one.
	Composite string
}

// kubectlApply are the field managers of `kubectl apply`. They are not a source: the user can apply the new name.
var kubectlApply = []string{"kubectl", "kubectl-client-side-apply", "kubectl-last-applied"}

// composing is the prefix of the field managers of Compositions.
const composing = "apiextensions.crossplane.io/compos"

// OwnerOf returns the owner of the external name of a managed resource, and where several have written it, the one that would write
// it again.
func OwnerOf(o *unstructured.Unstructured) Owner { return ownerOf(o, nil) }

// ownerOf returns the owner of the name. sources are further field managers that apply manifests. A source takes precedence over the
// provider, also where the provider has written the name last: the source writes it again.
func ownerOf(o *unstructured.Unstructured, sources []string) Owner {
	writers := evidence.WritersOf(o)
	var owner Owner
	var last evidence.Writer
	for _, w := range writers {
		if !w.Name {
			continue
		}
		owner, last = ownerBy(o, w, sources), w
		if owner.Source {
			return owner
		}
	}
	applies := evidence.AppliedName(o) != ""
	for _, w := range writers {
		restores := applies && w.Applied || last.Name && last.Manager != kube.FieldManager && evidence.InTurns(o.GetCreationTimestamp().Time, w, last)
		if by := ownerBy(o, w, sources); by.Source && !w.Name && restores {
			return by
		}
	}
	return owner
}

func ownerBy(o *unstructured.Unstructured, w evidence.Writer, sources []string) Owner {
	owner := Owner{Manager: w.Manager}
	composite := o.GetLabels()[managed.LabelComposite]
	named := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(w.Manager), prefix) }
	switch {
	case named(composing), composite != "" && named("crossplane") && !strings.Contains(w.Manager, "provider"):
		owner.Source, owner.Composite = true, composite
	case kube.IsGitOps(w.Manager), slices.Contains(sources, w.Manager):
		owner.Source = true
	case w.Apply:
		owner.Source = !slices.Contains(kubectlApply, w.Manager) && !named("godwit")
	}
	return owner
}

// policiesOwner returns the source that applies spec.managementPolicies; none has no manager.
func policiesOwner(o *unstructured.Unstructured, sources []string) Owner {
	return sourceOf(o, sources, func(w evidence.Writer) bool { return w.Policies })
}

// StepsOwner returns the field manager that applies spec.managementPolicies or the pause of a managed resource from a source, and so would
// write over the steps of a renaming or a handover. It is empty without one. sources are further field managers that apply manifests.
func StepsOwner(o *unstructured.Unstructured, sources []string) string {
	return sourceOf(o, sources, func(w evidence.Writer) bool { return w.Policies || w.Paused }).Manager
}

// sourceOf returns the first source among the writers that own a field; none has no manager.
func sourceOf(o *unstructured.Unstructured, sources []string, owns func(evidence.Writer) bool) Owner {
	for _, w := range evidence.WritersOf(o) {
		if by := ownerBy(o, w, sources); by.Source && owns(w) {
			return by
		}
	}
	return Owner{}
}
