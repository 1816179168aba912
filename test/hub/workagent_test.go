package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workAgent plays the work agent of a cluster.
type workAgent struct {
	c client.Client
	// applied are what works have applied, by their UID.
	applied map[types.UID][]appliedObject
}

type appliedObject struct {
	resource string
	*unstructured.Unstructured
}

// pass applies the works of the cluster at a hub, deletes what they do not have any more, and reports.
func (a *workAgent) pass(ctx context.Context, hub client.Client, cluster string) error {
	works := &workv1.ManifestWorkList{}
	if err := hub.List(ctx, works, client.InNamespace(cluster)); err != nil {
		return err
	}
	for i := range works.Items {
		w := &works.Items[i]
		switch {
		case !w.DeletionTimestamp.IsZero():
			if err := a.deleteOthers(ctx, w, nil); err != nil {
				return err
			}
			w.Finalizers = slices.DeleteFunc(w.Finalizers, func(f string) bool { return f == workv1.ManifestWorkFinalizer })
			if err := hub.Update(ctx, w); err != nil {
				return err
			}
		case !slices.Contains(w.Finalizers, workv1.ManifestWorkFinalizer):
			w.Finalizers = append(w.Finalizers, workv1.ManifestWorkFinalizer)
			if err := hub.Update(ctx, w); err != nil {
				return err
			}
		default:
			if err := a.apply(ctx, hub, w); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *workAgent) apply(ctx context.Context, hub client.Client, w *workv1.ManifestWork) error {
	before := w.Status.DeepCopy()
	var applied []appliedObject
	w.Status.ResourceStatus.Manifests = nil
	for _, m := range w.Spec.Workload.Manifests {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(m.Raw); err != nil {
			return err
		}
		mapping, err := a.c.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind())
		if err != nil {
			return err
		}
		resource := mapping.Resource.Resource
		config := configOf(w, resource, o)
		if config.UpdateStrategy == nil || config.UpdateStrategy.Type != workv1.UpdateStrategyTypeReadOnly {
			manager := client.FieldOwner("work-agent")
			if s := config.UpdateStrategy; s != nil && s.ServerSideApply != nil {
				manager = client.FieldOwner(s.ServerSideApply.FieldManager)
			}
			if err := a.c.Patch(ctx, o.DeepCopy(), client.RawPatch(types.ApplyPatchType, m.Raw), client.ForceOwnership, manager); err != nil {
				return err
			}
			applied = append(applied, appliedObject{resource, o})
		}
		condition, err := a.report(ctx, o, config)
		if err != nil {
			return err
		}
		condition.ResourceMeta = workv1.ManifestResourceMeta{Kind: o.GetKind(), Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, condition)
	}
	if err := a.deleteOthers(ctx, w, applied); err != nil {
		return err
	}
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "R", ObservedGeneration: w.Generation})
	if equality.Semantic.DeepEqual(*before, w.Status) {
		return nil
	}
	return hub.Status().Update(ctx, w)
}

// deleteOthers deletes what a work has applied, but for what it has now and what it leaves to others.
func (a *workAgent) deleteOthers(ctx context.Context, w *workv1.ManifestWork, now []appliedObject) error {
	for _, o := range a.applied[w.UID] {
		has := slices.ContainsFunc(now, func(other appliedObject) bool {
			return other.resource == o.resource && client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(o)
		})
		if has || isOrphan(w, o.resource, o.GetNamespace(), o.GetName()) {
			continue
		}
		if err := client.IgnoreNotFound(a.c.Delete(ctx, o.Unstructured.DeepCopy())); err != nil {
			return err
		}
	}
	if a.applied == nil {
		a.applied = map[types.UID][]appliedObject{}
	}
	a.applied[w.UID] = now
	return nil
}

// configOf returns what a work says about one of its objects.
func configOf(w *workv1.ManifestWork, resource string, o *unstructured.Unstructured) workv1.ManifestConfigOption {
	for _, c := range w.Spec.ManifestConfigs {
		if id := c.ResourceIdentifier; id.Resource == resource && id.Namespace == o.GetNamespace() && id.Name == o.GetName() {
			return c
		}
	}
	return workv1.ManifestConfigOption{}
}

// report reads an object, and reports the fields that a work asks for.
func (a *workAgent) report(ctx context.Context, o *unstructured.Unstructured, config workv1.ManifestConfigOption) (c workv1.ManifestCondition, err error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err = a.c.Get(ctx, client.ObjectKeyFromObject(o), live)
	available := metav1.ConditionTrue
	if apierrors.IsNotFound(err) {
		available = metav1.ConditionFalse
	} else if err != nil {
		return c, err
	}
	since := metav1.Unix(0, 0) // the same in each pass
	c.Conditions = []metav1.Condition{
		{Type: workv1.ManifestApplied, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: since},
		{Type: workv1.ManifestAvailable, Status: available, Reason: "R", LastTransitionTime: since},
	}
	for _, rule := range config.FeedbackRules {
		for _, path := range rule.JsonPaths {
			value, found, err := fieldOf(live, path.Path)
			if err != nil {
				return c, err
			}
			if found {
				c.StatusFeedbacks.Values = append(c.StatusFeedbacks.Values, workv1.FeedbackValue{Name: path.Name, Value: value})
			}
		}
	}
	return c, nil
}

// fieldOf returns a field of an object as a work agent reports it.
func fieldOf(o *unstructured.Unstructured, path string) (v workv1.FieldValue, found bool, err error) {
	j := jsonpath.New("feedback").AllowMissingKeys(true)
	if err := j.Parse("{" + path + "}"); err != nil {
		return v, false, err
	}
	var text bytes.Buffer
	if err := j.Execute(&text, o.Object); err != nil {
		return v, false, nil //nolint:nilerr // an index of a list that is shorter
	}
	if text.Len() == 0 {
		return v, false, nil
	}
	results, err := j.FindResults(o.Object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return v, false, err
	}
	if _, isNumber := results[0][0].Interface().(int64); isNumber {
		n, err := strconv.ParseInt(text.String(), 10, 64)
		if err != nil {
			return v, false, fmt.Errorf("read %s: %w", path, err)
		}
		return workv1.FieldValue{Type: workv1.Integer, Integer: &n}, true, nil
	}
	s := text.String()
	return workv1.FieldValue{Type: workv1.String, String: &s}, true, nil
}
