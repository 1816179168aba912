package source

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// WhenEvicted says when the work agent deletes what a hub has applied that the cluster has left. A KlusterletConfig, or the Klusterlet, may set another
// period, in spec.workConfiguration.appliedManifestWorkEvictionGracePeriod of the Klusterlet. What counts is what it has after the move, which
// the target hub configures.
const WhenEvicted = "when the eviction grace period of its Klusterlet ends after the move (60 minutes by default)"

// addOnLabel is on ManifestWorks of add-ons.
const addOnLabel = "open-cluster-management.io/addon-name"

// EvictedWorks returns the ManifestWorks of a cluster whose objects the work agent deletes after the move, sorted by name. It omits
// those of the klusterlet, which the import controller creates on the target hub, and those of add-ons, whose agents leave
// with them.
func EvictedWorks(name string, works []workv1.ManifestWork) []string {
	var names []string
	for i := range works {
		w := &works[i]
		if ofUser(name, w) && !cluster.IsOrphan(w) {
			names = append(names, w.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ofUser reports whether a ManifestWork of a cluster is neither of its klusterlet nor of the migration nor of an add-on.
func ofUser(name string, w *workv1.ManifestWork) bool {
	_, ofAddOn := w.Labels[addOnLabel]
	return !ofAddOn && w.Name != cluster.KlusterletWork(name) && w.Name != cluster.KlusterletCRDWork(name) && w.Name != klusterlet.WorkName
}

// WhyEvicted says what becomes of what ManifestWorks have applied.
func WhyEvicted(name string, works []string) string {
	return fmt.Sprintf("ManifestWork %s of the source hub does not move, and the work agent deletes from %s what it has applied %s", cluster.Few(works), name, WhenEvicted)
}

// works reads the ManifestWorks of a cluster.
func (h Hub) works(ctx context.Context, name string) ([]workv1.ManifestWork, error) {
	list := &workv1.ManifestWorkList{}
	err := h.Client.List(ctx, list, client.InNamespace(name))
	return list.Items, err
}

// checkLosses refuses a cluster that would lose something, unless the user has chosen what becomes of it.
func (h Hub) checkLosses(ctx context.Context, name string) error {
	if h.OnEvictedWorks == api.EvictedWorksRefuse {
		works, err := h.works(ctx, name)
		if err != nil {
			return err
		}
		if evicted := EvictedWorks(name, works); len(evicted) > 0 {
			return cluster.Fail(cluster.ReasonWorkStays, "%s: choose Orphan or Accept for it in onEvictedWorks of the migration", WhyEvicted(name, evicted))
		}
	}
	if h.OnUserObjects != api.UserObjectsRefuse {
		return nil
	}
	unmoved, err := h.UnmovedObjects(ctx, name)
	if err == nil && len(unmoved) > 0 {
		return cluster.Fail(cluster.ReasonUserObjects, "%s: choose Move, Keep or Accept for it in onUserObjects of the migration", WhyUnmoved(name, unmoved))
	}
	return err
}

// AcceptedLosses returns what a cluster loses because the user has accepted it: ManifestWorks, and objects of users.
func (h Hub) AcceptedLosses(ctx context.Context, name string) (evicted, unmoved []string, err error) {
	if h.OnEvictedWorks == api.EvictedWorksAccept {
		works, err := h.works(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		evicted = EvictedWorks(name, works)
	}
	if h.OnUserObjects == api.UserObjectsAccept {
		unmoved, err = h.UnmovedObjects(ctx, name)
	}
	return evicted, unmoved, err
}

// UnmovedObjects returns the Secrets and ConfigMaps of users in the namespace of a cluster that no rule moves, as kind and name.
func (h Hub) UnmovedObjects(ctx context.Context, name string) ([]string, error) {
	found, err := h.UserObjects(ctx, name)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(o cluster.UserObject) bool {
		for _, r := range h.MigrationRules() {
			if r.Group == "" && r.Kind == o.Kind && r.Matches(name, o.Content) {
				return true
			}
		}
		return false
	})
	if len(found) == 0 {
		return nil, nil
	}
	moved, err := h.References(ctx, name)
	if err != nil {
		return nil, err
	}
	var unmoved []string
	for _, o := range found {
		if !slices.Contains(moved, resource.Reference{Kind: o.Kind, Name: o.Name}) {
			unmoved = append(unmoved, o.String())
		}
	}
	return unmoved, nil
}

// WhyUnmoved says what becomes of objects that no rule moves.
func WhyUnmoved(name string, objects []string) string {
	return fmt.Sprintf("namespace %s of the source hub has %s, which no rule moves, and the import controller deletes the namespace after the move", name, cluster.Few(objects))
}

// orphanWorks sets the delete option of a cluster's ManifestWorks to Orphan, if the user has chosen that. It returns which of them
// the work agent has not applied again. A work agent that has sets no owner on what it applies, so that nothing deletes it.
func (h Hub) orphanWorks(ctx context.Context, name string) (waits string, err error) {
	if h.OnEvictedWorks != api.EvictedWorksOrphan {
		return "", nil
	}
	works, err := h.works(ctx, name)
	if err != nil {
		return "", err
	}
	for i := range works {
		w := &works[i]
		if !ofUser(name, w) {
			continue
		}
		if !cluster.IsOrphan(w) {
			if err := h.Orphan(ctx, w); err != nil {
				return "", err
			}
		}
		if waits == "" && !cluster.IsApplied(w, w.Generation) {
			waits = fmt.Sprintf("the cluster has not applied ManifestWork %s/%s, whose delete option is Orphan now", name, w.Name)
		}
	}
	return waits, nil
}

// restoreWorks restores the delete options of the ManifestWorks of a cluster that returns. It keeps one that a user has set since.
func (h Hub) restoreWorks(ctx context.Context, name string) error {
	if h.OnEvictedWorks != api.EvictedWorksOrphan {
		return nil
	}
	works, err := h.works(ctx, name)
	if err != nil {
		return err
	}
	for i := range works {
		w := &works[i]
		if ofUser(name, w) {
			if err := h.Own(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepNamespace keeps the import controller from deleting the namespace of a cluster, if the user has chosen that and there is
// something to keep. The ManagedCluster must still exist: the controller reacts to its deletion.
func (h Hub) keepNamespace(ctx context.Context, name string) error {
	if h.OnUserObjects != api.UserObjectsKeep {
		return nil
	}
	kept, err := h.UserObjects(ctx, name)
	if err != nil || len(kept) == 0 {
		return err
	}
	namespace := &corev1.Namespace{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if err := cluster.Patch(ctx, h.Client, namespace, func() error {
		if _, ok := namespace.Annotations[cluster.AnnotationRetain]; !ok {
			if namespace.Annotations == nil {
				namespace.Annotations = map[string]string{}
			}
			namespace.Annotations[cluster.AnnotationRetain] = ""
		}
		return nil
	}); err != nil {
		return fmt.Errorf("keep namespace %s: %w", name, err)
	}
	return nil
}
