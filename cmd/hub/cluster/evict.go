package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The work agent of a cluster evicts what a hub has applied that the cluster has left, after a grace period of 60 minutes by default. It
// deletes objects whose only owner is the AppliedManifestWork. The import controller leaves the ManifestWork with the CRD of Klusterlets
// without Orphan, so that the eviction would delete the CRD, and with it the Klusterlet and its agents.

// klusterletWorks returns the names of the ManifestWorks by which the agents of a cluster exist.
func klusterletWorks(cluster string) []string {
	return []string{KlusterletCRDWork(cluster), KlusterletWork(cluster)}
}

// IsOrphan reports whether a ManifestWork has delete option Orphan: then its cluster owns what it has applied.
func IsOrphan(work *workv1.ManifestWork) bool {
	return work.Spec.DeleteOption != nil && work.Spec.DeleteOption.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan
}

// IsApplied reports whether the cluster has applied a generation of a ManifestWork, or a later one.
func IsApplied(work *workv1.ManifestWork, generation int64) bool {
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration >= generation
}

// Orphan sets delete option Orphan on a ManifestWork, and saves the one that it replaces.
func (h Hub) Orphan(ctx context.Context, work *workv1.ManifestWork) error {
	original, err := OriginalOf(work, h.UID)
	if err != nil {
		return err
	}
	if err := Patch(ctx, h.Client, work, func() error {
		if original.DeleteOption == nil {
			original.DeleteOption = &workv1.DeleteOption{}
			if work.Spec.DeleteOption != nil {
				original.DeleteOption = work.Spec.DeleteOption
			}
		}
		work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
		return original.Save(work)
	}); err != nil {
		return fmt.Errorf("set delete option Orphan of ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// Own restores the delete option that Orphan has replaced. It keeps one that another client has set since.
func (h Hub) Own(ctx context.Context, work *workv1.ManifestWork) error {
	if !HasOriginal(work, h.UID) {
		return nil
	}
	original, err := OriginalOf(work, h.UID)
	if err != nil {
		return err
	}
	err = Patch(ctx, h.Client, work, func() error {
		if original.DeleteOption != nil && IsOrphan(work) {
			work.Spec.DeleteOption = original.DeleteOption
			if *original.DeleteOption == (workv1.DeleteOption{}) {
				work.Spec.DeleteOption = nil
			}
		}
		original.DeleteOption = nil
		return original.Save(work)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("restore the delete option of ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// OrphanKlusterlet sets delete option Orphan on the ManifestWorks by which the agents of a cluster exist, so that no eviction deletes the
// agents. It returns what it waits for until the cluster has applied the option. The works must not be read-only: a cluster that does not
// apply a work does not give up its objects either.
func (h Hub) OrphanKlusterlet(ctx context.Context, cluster string) (waits string, err error) {
	for _, name := range klusterletWorks(cluster) {
		work, err := h.work(ctx, cluster, name)
		if err != nil {
			return "", err
		}
		if work == nil || IsOrphan(work) && !HasOriginal(work, h.UID) {
			continue
		}
		if err := h.Orphan(ctx, work); err != nil {
			return "", err
		}
		if waits == "" && !IsApplied(work, work.Generation) {
			waits = fmt.Sprintf("the cluster has not applied delete option Orphan of ManifestWork %s/%s", cluster, name)
		}
	}
	return waits, nil
}

// CheckOrphan fails for a cluster whose agents an eviction would delete. The import controller replaces the delete option of a
// ManifestWork with a new generation of its objects.
func (h Hub) CheckOrphan(ctx context.Context, cluster string) error {
	for _, name := range klusterletWorks(cluster) {
		work, err := h.work(ctx, cluster, name)
		if err != nil {
			return err
		}
		if work != nil && !IsOrphan(work) {
			return Fail(ReasonNotPrepared, "ManifestWork %s/%s has not delete option Orphan any more, and the cluster would delete its own klusterlet after the move: roll back, and start another migration", cluster, name)
		}
	}
	return nil
}

// OwnKlusterlet restores the delete options that OrphanKlusterlet has replaced. It keeps one that another client has set since.
func (h Hub) OwnKlusterlet(ctx context.Context, cluster string) error {
	for _, name := range klusterletWorks(cluster) {
		work, err := h.work(ctx, cluster, name)
		if err != nil {
			return err
		}
		if work == nil {
			continue
		}
		if err := h.Own(ctx, work); err != nil {
			return err
		}
	}
	return nil
}

// work reads a ManifestWork of a cluster, or returns nil if it does not exist.
func (h Hub) work(ctx context.Context, cluster, name string) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{}
	err := h.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, work)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return work, err
}
