package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// Owned returns the objects of a cluster that the migration has created, except its ManagedCluster and its namespace.
// It finds them by their label alone, even after their referrers are gone. In a pass with batch reads, they have only their
// metadata.
func (h Hub) Owned(ctx context.Context, cluster string) ([]Object, error) {
	var objects []Object
	seen := map[schema.GroupKind]bool{}
	for _, rule := range slices.Concat(h.MigrationRules(), []resource.Rule{referenced("Secret"), referenced("ConfigMap")}) {
		kind := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
		if rule.ClusterScoped || seen[kind] {
			continue
		}
		seen[kind] = true
		if rule.Group == "" {
			rule = referenced(rule.Kind)
		}
		rule.Names, rule.Label, rule.Annotation = nil, LabelMigration, ""
		items, err := h.listOwned(ctx, cluster, rule)
		if err != nil {
			return nil, err
		}
		for i := range items {
			if IsOwned(&items[i], h.UID) {
				objects = append(objects, Object{&items[i], rule})
			}
		}
	}
	return objects, nil
}

// listOwned reads the objects of a kind that the migration has created for a cluster.
func (h Hub) listOwned(ctx context.Context, cluster string, rule resource.Rule) ([]unstructured.Unstructured, error) {
	kind, err := h.served(schema.GroupKind{Group: rule.Group, Kind: rule.Kind})
	if err != nil || kind == nil {
		return nil, err
	}
	found, all, err := h.ownedMetadata(ctx, *kind, cluster)
	switch {
	case err != nil:
		return nil, err
	case !all:
		return h.list(ctx, cluster, rule)
	}
	items := make([]unstructured.Unstructured, len(found))
	for i := range found {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&found[i])
		if err != nil {
			return nil, fmt.Errorf("read the metadata of %s %s/%s: %w", rule.Kind, cluster, found[i].Name, err)
		}
		items[i].Object = map[string]any{"metadata": content["metadata"]}
		items[i].SetGroupVersionKind(*kind)
	}
	slices.SortFunc(items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return items, nil
}

// ownedMetadata reads the metadata of the objects of a kind that the migration has created, by one request for a pass. It returns those
// in a namespace, or without a namespace those of a name; or false if the caller must read them one by one.
func (h Hub) ownedMetadata(ctx context.Context, kind schema.GroupVersionKind, in string) ([]metav1.PartialObjectMetadata, bool, error) {
	if h.batchReads == nil {
		return nil, false, nil
	}
	return h.batchReads.owned.of(kind.GroupKind()).get(in, func(limit int64) ([]metav1.PartialObjectMetadata, bool, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := h.Client.List(ctx, list, client.MatchingLabels{LabelMigration: h.UID}, client.Limit(limit))
		return list.Items, list.Continue != "", err
	}, func(o *metav1.PartialObjectMetadata) string {
		if o.Namespace == "" {
			return o.Name
		}
		return o.Namespace
	})
}

// FindOwned reads an object that the migration has created. It returns false if the object or its kind does not exist, or if it does not
// belong to the migration. In a pass with batch reads, it reads only its metadata.
func (h Hub) FindOwned(ctx context.Context, o client.Object) (bool, error) {
	kind, err := h.Client.GroupVersionKindFor(o)
	if err != nil {
		return false, err
	}
	version, err := h.served(kind.GroupKind())
	if err != nil || version == nil {
		return false, err
	}
	in := o.GetNamespace()
	if in == "" {
		in = o.GetName()
	}
	found, all, err := h.ownedMetadata(ctx, kind, in)
	if err != nil {
		return false, err
	}
	if !all {
		err := h.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		return err == nil && IsOwned(o, h.UID), client.IgnoreNotFound(err)
	}
	i := slices.IndexFunc(found, func(m metav1.PartialObjectMetadata) bool { return m.Name == o.GetName() })
	if i < 0 {
		return false, nil
	}
	o.SetUID(found[i].UID)
	o.SetResourceVersion(found[i].ResourceVersion)
	o.SetLabels(found[i].Labels)
	o.SetAnnotations(found[i].Annotations)
	o.SetFinalizers(found[i].Finalizers)
	o.SetDeletionTimestamp(found[i].DeletionTimestamp)
	return true, nil
}

// IsOwned reports whether the migration has created an object.
func IsOwned(o client.Object, migration string) bool {
	return o.GetLabels()[LabelMigration] == migration
}

// MarkOwned labels an object as created by the migration, and annotates it with the hash of its content.
func MarkOwned(o client.Object, migration, content string) {
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelMigration] = migration
	o.SetLabels(labels)
	annotations := clone(o)
	annotations[annotationContent] = content
	o.SetAnnotations(annotations)
}

// SameContent reports whether an object was made of the same content as another one.
func SameContent(o, other client.Object) bool {
	content := o.GetAnnotations()[annotationContent]
	return content != "" && content == other.GetAnnotations()[annotationContent]
}

// SameProof reports whether two objects have the same proof, or none.
func SameProof(o, other client.Object) bool {
	return o.GetAnnotations()[AnnotationProof] == other.GetAnnotations()[AnnotationProof]
}

// UnmarkOwned removes the marks of [MarkOwned], and the proof: the object belongs to the user.
func UnmarkOwned(o client.Object) {
	labels, annotations := maps.Clone(o.GetLabels()), clone(o)
	delete(labels, LabelMigration)
	delete(annotations, annotationContent)
	delete(annotations, AnnotationProof)
	delete(annotations, AnnotationIdentity)
	if len(labels) == 0 {
		labels = nil
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}
