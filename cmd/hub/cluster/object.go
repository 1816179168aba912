package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// Object is an object of a cluster, with the rule that selects it.
type Object struct {
	*unstructured.Unstructured
	Rule resource.Rule
}

// Objects returns the objects of a cluster that the rules select, in the order of the rules, followed by the objects
// that they refer to. It skips kinds that the hub does not serve.
func (h Hub) Objects(ctx context.Context, cluster string, rules []resource.Rule) ([]Object, error) {
	var objects []Object
	seen := map[string]bool{}
	add := func(o *unstructured.Unstructured, rule resource.Rule) {
		key := o.GetKind() + "/" + o.GetName()
		if !seen[key] {
			seen[key] = true
			objects = append(objects, Object{o, rule})
		}
	}
	in := namespace{Hub: h, name: cluster, rules: rules, allByKind: map[schema.GroupKind][]unstructured.Unstructured{}}
	for _, rule := range rules {
		items, err := in.list(ctx, rule)
		if err != nil {
			return nil, err
		}
		for i := range items {
			if !rule.Matches(cluster, items[i].Object) {
				continue
			}
			isCommon := false
			if rule.Users {
				if isCommon, err = h.isCommon(ctx, rule.Kind, items[i].GetName()); err != nil {
					return nil, err
				}
			}
			if !isCommon {
				add(&items[i], rule)
			}
		}
	}
	for _, o := range slices.Clone(objects) {
		for _, ref := range resource.References(o.Object, rules) {
			found, err := in.get(ctx, ref)
			if err != nil {
				return nil, fmt.Errorf("read %s %s, to which %s refers: %w", ref.Kind, ref.Name, o.GetName(), err)
			}
			if found != nil {
				add(found, referenced(ref.Kind))
			}
		}
	}
	return objects, nil
}

// References returns the objects to which the objects of a cluster refer. It reads only the kinds that refer to others.
func (h Hub) References(ctx context.Context, cluster string) ([]resource.Reference, error) {
	rules := h.MigrationRules()
	in := namespace{Hub: h, name: cluster, rules: rules, allByKind: map[schema.GroupKind][]unstructured.Unstructured{}}
	var found []resource.Reference
	for _, rule := range rules {
		if len(rule.References) == 0 {
			continue
		}
		items, err := in.list(ctx, rule)
		if err != nil {
			return nil, err
		}
		for i := range items {
			if rule.Matches(cluster, items[i].Object) {
				found = append(found, resource.References(items[i].Object, rules)...)
			}
		}
	}
	return found, nil
}

// namespace reads the objects of one cluster.
type namespace struct {
	Hub
	name  string
	rules []resource.Rule
	// allByKind has all objects of each kind that was listed without a selector.
	allByKind map[schema.GroupKind][]unstructured.Unstructured
}

// list reads the objects that a rule may select. If one rule needs all objects of a kind, they are read once for all
// rules of the kind.
func (n namespace) list(ctx context.Context, rule resource.Rule) ([]unstructured.Unstructured, error) {
	kind := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
	if items, ok := n.allByKind[kind]; ok {
		return items, nil
	}
	if !slices.ContainsFunc(n.rules, func(r resource.Rule) bool {
		return r.Group == rule.Group && r.Kind == rule.Kind && !r.ClusterScoped && len(r.Names) == 0 && r.Label == ""
	}) {
		return n.Hub.list(ctx, n.name, rule)
	}
	items, err := n.Hub.list(ctx, n.name, resource.Rule{Group: rule.Group, Kind: rule.Kind})
	if err != nil {
		return nil, err
	}
	n.allByKind[kind] = items
	return items, nil
}

// get reads an object to which another one refers. It returns nil if the object does not exist.
func (n namespace) get(ctx context.Context, ref resource.Reference) (*unstructured.Unstructured, error) {
	if items, ok := n.allByKind[schema.GroupKind{Kind: ref.Kind}]; ok {
		for i := range items {
			if items[i].GetName() == ref.Name {
				return &items[i], nil
			}
		}
		return nil, nil
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: ref.Kind})
	err := n.Client.Get(ctx, client.ObjectKey{Namespace: n.name, Name: ref.Name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// referenced returns the rule of an object to which another one refers.
func referenced(kind string) resource.Rule {
	return resource.Rule{Kind: kind, Finalizers: []string{resource.SecretFinalizer}}
}

// list reads the objects that a rule may select.
func (h Hub) list(ctx context.Context, cluster string, rule resource.Rule) ([]unstructured.Unstructured, error) {
	kind, err := h.served(schema.GroupKind{Group: rule.Group, Kind: rule.Kind})
	if err != nil || kind == nil {
		return nil, err
	}
	if none, err := h.isUnused(ctx, *kind); err != nil || none {
		return nil, err
	}
	if len(rule.Names) > 0 {
		var items []unstructured.Unstructured
		for _, pattern := range rule.Names {
			o := unstructured.Unstructured{}
			o.SetGroupVersionKind(*kind)
			key := client.ObjectKey{Namespace: cluster, Name: strings.ReplaceAll(pattern, resource.ClusterName, cluster)}
			if rule.ClusterScoped {
				key.Namespace = ""
			}
			switch err := h.Client.Get(ctx, key, &o); {
			case apierrors.IsNotFound(err):
			case err != nil:
				return nil, err
			default:
				items = append(items, o)
			}
		}
		return items, nil
	}
	var options []client.ListOption
	if !rule.ClusterScoped {
		options = append(options, client.InNamespace(cluster))
	}
	if rule.Label != "" {
		options = append(options, client.HasLabels{rule.Label})
	}
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(kind.GroupVersion().WithKind(rule.Kind + "List"))
	if err := h.Client.List(ctx, items, options...); err != nil {
		return nil, err
	}
	slices.SortFunc(items.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return items.Items, nil
}

// Pausable returns the rules of kinds that a migration pauses.
func Pausable(rules []resource.Rule) []resource.Rule {
	var pausable []resource.Rule
	for _, r := range rules {
		if r.Pause != "" {
			r.References = nil
			pausable = append(pausable, r)
		}
	}
	return pausable
}

// paused is the value of annotations that pause: Hive requires this one, metal3 accepts any.
const paused = "true"

// Pause sets the annotation that pauses the controller of an object, if its kind has one.
func Pause(ctx context.Context, c client.Client, o Object, migration string) error {
	if o.Rule.Pause == "" {
		return nil
	}
	original, err := OriginalOf(o, migration)
	if err != nil {
		return err
	}
	if err := Patch(ctx, c, o.Unstructured, func() error {
		original.Replace(o, o.Rule.Pause, paused)
		return original.Save(o)
	}); err != nil {
		return fmt.Errorf("pause %s: %w", name(c, o), err)
	}
	return nil
}

// Unpause restores the annotation that pauses an object, if the migration has set it.
func Unpause(ctx context.Context, c client.Client, o Object, migration string) error {
	if !HasOriginal(o, migration) {
		return nil
	}
	original, err := OriginalOf(o, migration)
	if err != nil {
		return err
	}
	if err := Patch(ctx, c, o.Unstructured, func() error {
		original.Restore(o, o.Rule.Pause)
		return original.Save(o)
	}); err != nil {
		return fmt.Errorf("unpause %s: %w", name(c, o), err)
	}
	return nil
}

// name returns the kind, namespace and name of an object, for messages.
func name(c client.Client, o client.Object) string {
	kind := ""
	if gvk, err := c.GroupVersionKindFor(o); err == nil {
		kind = gvk.Kind + " "
	}
	if o.GetNamespace() != "" {
		return kind + o.GetNamespace() + "/" + o.GetName()
	}
	return kind + o.GetName()
}

// Name returns the kind, namespace and name of an object, for messages.
func Name(c client.Client, o client.Object) string { return name(c, o) }
