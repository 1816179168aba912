package source

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/internal/kube"
)

// warn looks for what may keep the migration of a cluster from its end. Nothing is refused for it, so what the hub does not let the agent list
// is not known.
func (h Hub) warn(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	if h.Warn == nil {
		return nil
	}
	var found []godwit.Finding
	if manager := kube.SourceOf(mc, "hubAcceptsClient"); manager != "" {
		found = append(found, godwit.Finding{Reason: cluster.ReasonApplied, Message: whyApplied(mc, manager)})
	}
	addOns, err := h.AddOns(ctx, mc.Name)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	for i := range addOns {
		if held := ofAgent(addOns[i].Finalizers); len(held) > 0 {
			found = append(found, godwit.Finding{Reason: cluster.ReasonAddOnFinalizer, Message: whyHeld(&addOns[i], held)})
		}
	}
	h.Warn(mc.Name, found)
	return nil
}

// heldBy returns which ManagedClusterAddOn keeps a ManagedCluster that is being deleted, and how it is released, or empty.
func (h Hub) heldBy(ctx context.Context, name string) (string, error) {
	addOns, err := h.AddOns(ctx, name)
	if err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	for i := range addOns {
		if held := ofAgent(addOns[i].Finalizers); len(held) > 0 {
			return fmt.Sprintf("only the agent of ManagedClusterAddOn %s, which has left, removes of its finalizers %s: %s", addOns[i].Name, strings.Join(held, ", "), editOf(&addOns[i])), nil
		}
	}
	return "", nil
}

// whyApplied says what a tool does to a ManagedCluster that it applies, and how it is suspended.
func whyApplied(mc *clusterv1.ManagedCluster, manager string) string {
	by, suspend := manager, "suspend what applies it"
	if o, ok := applierOf(mc); ok {
		by, suspend = fmt.Sprintf("%s (%s)", o.name, manager), o.suspend
	}
	return fmt.Sprintf("%s applies spec.hubAcceptsClient of ManagedCluster %s on the source hub, and would set it back when the cluster has moved: %s", by, mc.Name, suspend)
}

// applier is an object of a tool that applies others from a repository.
type applier struct{ name, suspend string }

const (
	// argoTracking is the annotation of Argo CD on what it applies: APPLICATION:GROUP/KIND:NAMESPACE/NAME, where an Application in another
	// namespace than that of Argo CD is NAMESPACE_NAME. argoInstance is the label with which other installations track the same.
	argoTracking = "argocd.argoproj.io/tracking-id"
	argoInstance = "argocd.argoproj.io/instance"
	// fluxKustomization and fluxRelease are the labels of Flux on what it applies, before /name and /namespace.
	fluxKustomization = "kustomize.toolkit.fluxcd.io"
	fluxRelease       = "helm.toolkit.fluxcd.io"
)

// applierOf returns the object that has applied a ManagedCluster, by the marks that its tool leaves.
func applierOf(mc *clusterv1.ManagedCluster) (applier, bool) {
	application, _, _ := strings.Cut(mc.Annotations[argoTracking], ":")
	if application == "" {
		application = mc.Labels[argoInstance]
	}
	if namespace, name, ok := strings.Cut(application, "_"); ok {
		application = namespace + "/" + name
	}
	if application != "" {
		return applier{"Application " + application, "remove spec.syncPolicy.automated of the Application, and do not synchronize it until the end of the migration"}, true
	}
	for _, of := range []struct{ domain, kind, resource string }{{fluxKustomization, "Kustomization", "kustomization"}, {fluxRelease, "HelmRelease", "helmrelease"}} {
		if name, namespace := mc.Labels[of.domain+"/name"], mc.Labels[of.domain+"/namespace"]; name != "" {
			return applier{of.kind + " " + namespace + "/" + name, fmt.Sprintf("flux suspend %s %s -n %s", of.resource, name, namespace)}, true
		}
	}
	return applier{}, false
}

// ofAgent returns the finalizers of a ManagedClusterAddOn that only the agent of the add-on removes: those of hooks before a deletion. The hub
// itself removes the others.
func ofAgent(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return !strings.HasSuffix(f, "pre-delete") })
}

// editOf is how a user removes finalizers of a ManagedClusterAddOn, in few words.
func editOf(addOn *metav1.PartialObjectMetadata) string {
	return fmt.Sprintf("remove them: kubectl -n %s edit managedclusteraddon %s", addOn.Namespace, addOn.Name)
}

// whyHeld says which finalizers of a ManagedClusterAddOn only its agent removes, and how a user removes these alone: by a patch, unless the
// warning would be cut in it.
func whyHeld(addOn *metav1.PartialObjectMetadata, held []string) string {
	why := fmt.Sprintf("the deletion of ManagedClusterAddOn %s/%s on the source hub waits for %s, which only the agent of the add-on removes, and the agent leaves with the cluster. When Cleaning waits for it: ",
		addOn.Namespace, addOn.Name, strings.Join(held, ", "))
	patch := fmt.Sprintf("kubectl -n %s patch managedclusteraddon %s --type=json -p '%s'", addOn.Namespace, addOn.Name, removal(addOn.Finalizers, held))
	if len(why+patch) > hub.MaxWarning {
		return why + editOf(addOn)
	}
	return why + patch
}

// removal returns the JSON patch that removes some finalizers, and fails if their list has changed meanwhile.
func removal(finalizers, held []string) string {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return slices.Contains(held, f) })
	const path = "/metadata/finalizers"
	change := operation{Op: "replace", Path: path, Value: kept}
	if len(kept) == 0 {
		change = operation{Op: "remove", Path: path}
	}
	text, err := json.Marshal([]operation{{Op: "test", Path: path, Value: finalizers}, change})
	if err != nil {
		panic(err) // strings are always marshalled
	}
	return string(text)
}
