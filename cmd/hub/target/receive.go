package target

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/objectname"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// ReceiveResources applies the objects of clusters that have arrived completely. It does not change an existing object
// that the migration has not created; the cluster fails.
func (h Hub) ReceiveResources(ctx context.Context, arrived []message.Resources) (cluster.Result, error) {
	byName := map[string]message.Resources{}
	for _, r := range arrived {
		byName[r.Cluster] = r
	}
	return h.Each(ctx, slices.Sorted(maps.Keys(byName)), func(ctx context.Context, name string) (string, error) {
		objects, user, err := h.check(byName[name])
		if err != nil {
			return "", err
		}
		// If the namespace is new, most of the objects are new too.
		isNew, proof, err := h.namespace(ctx, name, identityAmong(objects))
		if err != nil {
			return "", err
		}
		if kubeconfig := byName[name].SourceKubeconfig; kubeconfig != nil {
			if err := h.keepReturn(ctx, name, user, kubeconfig, isNew); err != nil {
				return "", err
			}
		}
		for _, o := range objects {
			if o.Rule.Kind == kindCluster {
				annotate(o, cluster.AnnotationProof, proof)
			}
			if err := h.apply(ctx, o, isNew); err != nil {
				return "", err
			}
		}
		return "", nil
	})
}

// check checks all objects of a cluster before the first one is applied. It returns them in the order to apply: first
// the objects to which others refer, then by the order of the rules, in which Secrets come before hosts. user is the
// KlusterletConfig that the user has chosen for the cluster, if any.
func (h Hub) check(r message.Resources) (objects []cluster.Object, user string, err error) {
	contents := make([]map[string]any, len(r.Objects))
	var references []resource.Reference
	for i, text := range r.Objects {
		if err := json.Unmarshal(text, &contents[i]); err != nil {
			return nil, "", cluster.Fail(cluster.ReasonRefusedObject, "object %d of cluster %s is not a JSON object", i, r.Cluster)
		}
		if _, ok := resource.For(r.Cluster, contents[i], h.MigrationRules()); ok {
			references = append(references, resource.References(contents[i], h.MigrationRules())...)
		}
	}
	hasCluster := false
	for _, content := range contents {
		if err := resource.Check(r.Cluster, content, h.MigrationRules(), references); err != nil {
			return nil, "", cluster.Fail(cluster.ReasonRefusedObject, "%v", err)
		}
		rule, _ := resource.For(r.Cluster, content, h.MigrationRules())
		o := cluster.Object{Unstructured: &unstructured.Unstructured{Object: content}, Rule: rule}
		if rule.Kind == kindCluster {
			hasCluster, user = true, o.GetAnnotations()[cluster.AnnotationKlusterletConfig]
		}
		if err := h.prepare(o, len(r.SourceKubeconfig) > 0); err != nil {
			return nil, "", err
		}
		objects = append(objects, o)
	}
	if !hasCluster {
		return nil, "", cluster.Fail(cluster.ReasonRefusedObject, "the source hub has sent no ManagedCluster %s", r.Cluster)
	}
	if err := h.checkWay(r); err != nil {
		return nil, "", err
	}
	slices.SortStableFunc(objects, func(a, b cluster.Object) int { return h.order(a) - h.order(b) })
	return objects, user, nil
}

// order returns the position of an object's rule, or -1 if another object refers to the object.
func (h Hub) order(o cluster.Object) int {
	return slices.IndexFunc(h.MigrationRules(), func(r resource.Rule) bool {
		return r.Group == o.Rule.Group && r.Kind == o.Rule.Kind && o.Rule.Kind != ""
	})
}

// prepare labels an object with the migration and pauses it. A ManagedCluster is not accepted. imports means that the import controller
// configures its klusterlet.
func (h Hub) prepare(o cluster.Object, imports bool) error {
	original, err := cluster.OriginalOf(o, h.UID)
	if err != nil {
		return err
	}
	if err := original.Check(o, o.Rule.Pause); err != nil {
		return err
	}
	original.HubAcceptsClient, original.DeleteOption = nil, nil // nothing would ever restore them here, so that the object would stay marked
	if o.Rule.Pause != "" {
		original.Replace(o, o.Rule.Pause, "true")
	}
	if o.Rule.Kind == kindCluster {
		if imports {
			original.Replace(o, cluster.AnnotationKlusterletConfig, objectname.Return(o.GetName()))
			original.Replace(o, cluster.AnnotationNoAutoImport, "")
		}
		original.Replace(o, cluster.AnnotationMigrating, h.UID)
		original.Replace(o, cluster.AnnotationAccepted, "migration "+h.UID)
		if err := unstructured.SetNestedField(o.Object, false, "spec", "hubAcceptsClient"); err != nil {
			return cluster.Fail(cluster.ReasonRefusedObject, "ManagedCluster %s: %v", o.GetName(), err)
		}
	}
	if err := original.Save(o); err != nil {
		return err
	}
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	o.SetLabels(merge(labels, o.Rule.SetLabels))
	o.SetAnnotations(merge(annotations, o.Rule.SetAnnotations))
	return h.own(o.Unstructured)
}

func merge(into, from map[string]string) map[string]string {
	if len(from) == 0 {
		return into
	}
	merged := maps.Clone(into)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, from)
	return merged
}

// identityAmong returns the identity of the cluster in the objects that have arrived.
func identityAmong(objects []cluster.Object) string {
	for _, o := range objects {
		if o.Rule.Kind == kindCluster {
			return cluster.IdentityIn(o.Unstructured)
		}
	}
	return ""
}

// namespace creates the namespace of a cluster if it does not exist. It reports whether it has created it, and returns the proof for the
// ManagedCluster.
func (h Hub) namespace(ctx context.Context, name, identity string) (isNew bool, proof string, err error) {
	namespace := &corev1.Namespace{}
	err = h.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.LabelMigration: h.UID}}}
		markNamespace(namespace, identity)
		err := h.Client.Create(ctx, namespace)
		return err == nil, namespace.Annotations[cluster.AnnotationProof], err
	case err == nil && !namespace.DeletionTimestamp.IsZero():
		return false, "", fmt.Errorf("namespace %s of the target hub is being deleted", name)
	}
	if err == nil && !h.hasMarked(namespace) {
		err = h.retain(ctx, namespace, identity)
	}
	return false, namespace.Annotations[cluster.AnnotationProof], err
}

// retain keeps a namespace that was there before the ManagedCluster: the import controller deletes the namespace of a cluster that has left
// the hub.
func (h Hub) retain(ctx context.Context, namespace *corev1.Namespace, identity string) error {
	original, err := cluster.OriginalOf(namespace, h.UID)
	if err != nil {
		return err
	}
	if err := cluster.Patch(ctx, h.Client, namespace, func() error {
		original.Replace(namespace, cluster.AnnotationRetain, "true")
		markNamespace(namespace, identity)
		return original.Save(namespace)
	}); err != nil {
		return fmt.Errorf("retain namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// apply creates or updates an object, and restores its status. The pause prevents controllers from treating it as new
// before its status is restored.
func (h Hub) apply(ctx context.Context, o cluster.Object, isNew bool) error {
	status, hasStatus := o.Object["status"]
	applied, err := h.write(ctx, o.Unstructured, isNew)
	if err != nil {
		return err
	}
	if !o.Rule.Status || !hasStatus || equality.Semantic.DeepEqual(applied.Object["status"], status) {
		return nil
	}
	applied.Object["status"] = status
	if err := h.Client.Status().Update(ctx, applied); err != nil {
		return fmt.Errorf("restore the status of %s: %w", cluster.Name(h.Client, o.Unstructured), err)
	}
	return nil
}
