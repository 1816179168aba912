package kube

import (
	"bytes"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
)

// EntriesOf returns the entries of an object's managedFields that own a field by its name, such as spec or versions. Entries of
// subresources are not among them.
func EntriesOf(o metav1.Object, field string) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, e := range o.GetManagedFields() {
		if e.Subresource == "" && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:`+field+`"`)) {
			entries = append(entries, e)
		}
	}
	return entries
}

// AppliersOf names the managers whose server-side apply owns a field of an object.
func AppliersOf(o metav1.Object, field string) []string {
	var managers []string
	for _, e := range EntriesOf(o, field) {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			managers = append(managers, e.Manager)
		}
	}
	return managers
}

// ConversionSharers names the managers that keep parts of a CRD's spec.conversion when a server-side apply no longer has the field, such as
// the CA bundle of an injector. What is left is a conversion without a strategy, which the API server refuses. It is empty if no server-side
// apply owns a part of spec.conversion.
func ConversionSharers(crd metav1.Object) []string {
	appliers := AppliersOf(crd, "conversion")
	if len(appliers) == 0 {
		return nil
	}
	var sharers []string
	for _, e := range EntriesOf(crd, "conversion") {
		if e.Operation != metav1.ManagedFieldsOperationApply {
			sharers = append(sharers, e.Manager)
		}
	}
	return append(sharers, appliers[1:]...)
}

// gitOps are prefixes of the field managers of tools that apply manifests from a repository, and so set back what others change.
var gitOps = []string{
	"argocd", "argo-cd", "config-sync", "configsync", "fleetagent", "fleet-agent", "flux", "helm", "kapp", "kluctl", "kustomize-controller", "rancher",
}

// IsGitOps reports whether a field manager is a tool that applies manifests from a repository.
func IsGitOps(manager string) bool {
	return slices.ContainsFunc(gitOps, func(prefix string) bool { return strings.HasPrefix(strings.ToLower(manager), prefix) })
}

// SourceOf returns the manager that applies a field of an object from a source again and again, and so sets back what others change.
// It is empty without one: a user who applies a manifest by kubectl does so once.
func SourceOf(o metav1.Object, field string) string {
	for _, e := range EntriesOf(o, field) {
		byUser := strings.HasPrefix(e.Manager, "kubectl") || strings.HasPrefix(e.Manager, "godwit")
		if IsGitOps(e.Manager) || e.Operation == metav1.ManagedFieldsOperationApply && !byUser {
			return e.Manager
		}
	}
	return ""
}

// helm is the field manager of Helm 3, and of a client-side apply of Helm 4.
const helm = "helm"

// OwnerOf returns who applies a field of an object from a manifest. A server-side apply comes first, since it conflicts with other
// changes. `kubectl apply` and Helm also set back what others have changed, and their entries are updates like any other: kubectl
// leaves its annotation, and Helm its name.
func OwnerOf(o metav1.Object, field string) godwit.Owner {
	if appliers := AppliersOf(o, field); len(appliers) > 0 {
		return godwit.Owner{Manager: appliers[0], ServerSide: true}
	}
	if o.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != "" {
		return godwit.Owner{Manager: "kubectl apply"}
	}
	for _, e := range EntriesOf(o, field) {
		if e.Manager == helm {
			return godwit.Owner{Manager: helm}
		}
	}
	return godwit.Owner{}
}
