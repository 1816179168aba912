package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

	"github.com/godwit-dev/godwit/hub/cluster"
	"github.com/godwit-dev/godwit/hub/message"
	"github.com/godwit-dev/godwit/hub/resource"
)

// ReceiveResources applies the objects of clusters that have arrived completely. An object
// that is there and was not created by the migration fails its cluster, and is not
// changed.
func (h Hub) ReceiveResources(ctx context.Context, arrived []message.Resources) (cluster.Result, error) {
	byName := map[string]message.Resources{}
	for _, r := range arrived {
		byName[r.Cluster] = r
	}
	return cluster.Each(ctx, slices.Sorted(maps.Keys(byName)), func(ctx context.Context, name string) (string, error) {
		objects, err := h.check(byName[name])
		if err != nil {
			return "", err
		}
		if err := h.namespace(ctx, name); err != nil {
			return "", err
		}
		for _, o := range objects {
			if err := h.apply(ctx, o); err != nil {
				return "", err
			}
		}
		return "", nil
	})
}

// check decides on all objects of a cluster before the first is applied. What others refer
// to comes first, then the order of the rules, in which Secrets come before hosts.
func (h Hub) check(r message.Resources) ([]cluster.Object, error) {
	contents := make([]map[string]any, len(r.Objects))
	var references []resource.Reference
	for i, text := range r.Objects {
		if err := json.Unmarshal(text, &contents[i]); err != nil {
			return nil, cluster.Fail(cluster.ReasonRefusedObject, "object %d of cluster %s is no JSON object", i, r.Cluster)
		}
		if _, ok := resource.For(r.Cluster, contents[i], h.rules()); ok {
			references = append(references, resource.References(contents[i], h.rules())...)
		}
	}
	objects := make([]cluster.Object, 0, len(contents))
	hasCluster := false
	for _, content := range contents {
		if err := resource.Check(r.Cluster, content, h.rules(), references); err != nil {
			return nil, cluster.Fail(cluster.ReasonRefusedObject, "%v", err)
		}
		rule, _ := resource.For(r.Cluster, content, h.rules())
		o := cluster.Object{Unstructured: &unstructured.Unstructured{Object: content}, Rule: rule}
		hasCluster = hasCluster || rule.Kind == kindCluster
		if err := h.prepare(o); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	if !hasCluster {
		return nil, cluster.Fail(cluster.ReasonRefusedObject, "the source hub has sent no ManagedCluster %s", r.Cluster)
	}
	slices.SortStableFunc(objects, func(a, b cluster.Object) int { return h.order(a) - h.order(b) })
	return objects, nil
}

const kindCluster = "ManagedCluster"

// order of an object: -1 if another one refers to it.
func (h Hub) order(o cluster.Object) int {
	return slices.IndexFunc(h.rules(), func(r resource.Rule) bool {
		return r.Group == o.Rule.Group && r.Kind == o.Rule.Kind && o.Rule.Kind != ""
	})
}

// prepare makes an object one of the migration: labelled, paused, and not accepted.
func (h Hub) prepare(o cluster.Object) error {
	original, err := cluster.OriginalOf(o, h.UID)
	if err != nil {
		return err
	}
	if err := original.Check(o, o.Rule.Pause); err != nil {
		return err
	}
	if o.Rule.Pause != "" {
		original.Replace(o, o.Rule.Pause, "true")
	}
	if o.Rule.Kind == kindCluster {
		original.HubAcceptsClient, original.Work = nil, nil
		original.Replace(o, cluster.AnnotationMigrating, h.UID)
		original.Replace(o, cluster.AnnotationNoAutoImport, "")
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
	text, err := o.MarshalJSON()
	if err != nil {
		return fmt.Errorf("hash %s: %w", o.GetName(), err)
	}
	sum := sha256.Sum256(text)
	cluster.Own(o, h.UID, hex.EncodeToString(sum[:]))
	return nil
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

// namespace creates the namespace of a cluster, or uses one that is there.
func (h Hub) namespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{}
	err := h.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.LabelMigration: h.UID}}}
		return h.Client.Create(ctx, namespace)
	case err == nil && !namespace.DeletionTimestamp.IsZero():
		return fmt.Errorf("namespace %s of the target hub is being deleted", name)
	}
	return err
}

// apply creates an object, or makes it what the source has sent if the migration has created
// it, and restores its status. Until its status is restored, its pause keeps the controllers
// from taking it for new.
func (h Hub) apply(ctx context.Context, o cluster.Object) error {
	status, hasStatus := o.Object["status"]
	applied, err := h.write(ctx, o)
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

func (h Hub) write(ctx context.Context, o cluster.Object) (*unstructured.Unstructured, error) {
	name := cluster.Name(h.Client, o.Unstructured)
	present := &unstructured.Unstructured{}
	present.SetGroupVersionKind(o.GroupVersionKind())
	err := h.Client.Get(ctx, client.ObjectKeyFromObject(o), present)
	desired := o.DeepCopy()
	switch {
	case apierrors.IsNotFound(err):
		if err := h.Client.Create(ctx, desired); err != nil {
			return nil, fmt.Errorf("create %s: %w", name, err)
		}
		return desired, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case !cluster.IsOwned(present, h.UID):
		return nil, cluster.Fail(cluster.ReasonExists, "the target hub has %s, which the migration has not created: delete it there, or remove the cluster from the migration", name)
	case !present.GetDeletionTimestamp().IsZero():
		return nil, errors.New(name + " is being deleted")
	case cluster.SameContent(present, desired):
		return present, nil
	}
	desired.SetResourceVersion(present.GetResourceVersion())
	desired.SetUID(present.GetUID())
	desired.SetFinalizers(present.GetFinalizers())
	desired.SetOwnerReferences(present.GetOwnerReferences())
	if err := h.Client.Update(ctx, desired); err != nil {
		return nil, fmt.Errorf("update %s: %w", name, err)
	}
	return desired, nil
}
