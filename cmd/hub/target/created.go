package target

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// created reports whether the migration has created a ManagedCluster. Its label does not prove that: a client with the token by which clusters register
// may create a ManagedCluster with any label and finalizer, and the source hub knows the UID of the migration. Such a token writes no namespace. So
// the namespace of the cluster has a random value, and a ManagedCluster of the migration has the same one.
func (h Hub) created(ctx context.Context, mc *clusterv1.ManagedCluster) (bool, error) {
	if mc == nil || !cluster.IsOwned(mc, h.UID) {
		return false, nil
	}
	if h.Adopts {
		return true, nil
	}
	namespace, err := h.namespaceOf(ctx, mc.Name)
	if err != nil || namespace == nil || !h.hasMarked(namespace) {
		return false, err
	}
	// Neither has a proof if a migration of v0.1.0 has created both.
	proof := namespace.Annotations[cluster.AnnotationProof]
	return proof == mc.Annotations[cluster.AnnotationProof] || proof == string(mc.UID), nil
}

// namespaceOf reads the namespace of a cluster, or returns nil if it does not exist. In a pass with batch reads, one that the migration has
// created has only its metadata.
func (h Hub) namespaceOf(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	found, err := h.FindOwned(ctx, namespace)
	if err == nil && !found && namespace.UID == "" { // a batch has those alone that the migration has created
		err = h.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	}
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return namespace, nil
}

// hasMarked reports whether the migration has created a namespace, or keeps it.
func (h Hub) hasMarked(namespace *corev1.Namespace) bool {
	return cluster.IsOwned(namespace, h.UID) || cluster.HasOriginal(namespace, h.UID)
}

// annotate sets an annotation, unless its value is empty.
func annotate(o client.Object, name, value string) {
	if value == "" {
		return
	}
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	o.SetAnnotations(annotations)
}

// markNamespace gives a namespace the proof and the identity of its cluster. No other client knows the proof.
func markNamespace(namespace *corev1.Namespace, identity string) {
	annotate(namespace, cluster.AnnotationProof, rand.Text())
	annotate(namespace, cluster.AnnotationIdentity, identity)
}

// pin limits the proof to a ManagedCluster that is to be deleted. A client with the token can read its value, which so may be in another
// ManagedCluster as soon as this one is gone.
func (h Hub) pin(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	if h.Adopts || !mc.DeletionTimestamp.IsZero() {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: mc.Name}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := cluster.Patch(ctx, h.Client, namespace, func() error { annotate(namespace, cluster.AnnotationProof, string(mc.UID)); return nil }); err != nil {
		return fmt.Errorf("mark namespace %s before the deletion of its ManagedCluster: %w", mc.Name, err)
	}
	return nil
}

// unproven says what is known of a ManagedCluster that has the label of the migration alone.
func unproven(mc *clusterv1.ManagedCluster) string {
	return fmt.Sprintf("ManagedCluster %s has the label of the migration, and no proof that the migration has created it", mc.Name)
}

// foreign returns the failure of a ManagedCluster that the migration has not created, as far as it can prove. One that has joined is never to be deleted.
func (h Hub) foreign(mc *clusterv1.ManagedCluster) error {
	if isJoined(mc) {
		return h.joined(mc, h.Identities[mc.Name])
	}
	if cluster.IsOwned(mc, h.UID) {
		return cluster.Fail(cluster.ReasonForeignObject, "%s: a user has deleted its namespace, or another client has created it; it has never joined: delete it there if the cluster is to move", unproven(mc))
	}
	return cluster.Fail(cluster.ReasonForeignObject, "ManagedCluster %s on the target hub was not created by the migration, and has never joined: delete it there if the cluster is to move", mc.Name)
}

func isJoined(mc *clusterv1.ManagedCluster) bool {
	return meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionJoined)
}

// joined returns the failure of a cluster that has joined the target hub without the migration. identity is that of the cluster of this name at
// the source hub, if it is known.
func (h Hub) joined(mc *clusterv1.ManagedCluster, identity string) error {
	there := cluster.IdentityOf(mc)
	switch {
	case there != "" && there == identity:
		return cluster.Fail(cluster.ReasonMoved, "cluster %s has joined the target hub already, with the same claim %s %s as on the source hub: remove it from the migration", mc.Name, cluster.ClaimID, there)
	case there != "" && identity != "":
		return cluster.Fail(cluster.ReasonOtherCluster, "the target hub has another cluster %s that has joined (%s %s, on the source hub %s): remove the cluster from the migration", mc.Name, cluster.ClaimID, there, identity)
	case there != "":
		return cluster.Fail(cluster.ReasonOtherCluster, "the target hub has a cluster %s that has joined (%s %s; if the source hub has the same, the cluster has moved already): remove the cluster from the migration", mc.Name, cluster.ClaimID, there)
	}
	return cluster.Fail(cluster.ReasonOtherCluster, "the target hub has a cluster %s that has joined: remove the cluster from the migration", mc.Name)
}

// ours reads the ManagedCluster that the migration has created.
func (h Hub) ours(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	mc, err := h.Find(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case mc == nil:
		return nil, cluster.Fail(cluster.ReasonNotPrepared, "the target hub has no ManagedCluster %s: a user has deleted it; start another migration", name)
	}
	created, err := h.created(ctx, mc)
	if err == nil && !created {
		err = h.foreign(mc)
	}
	if err != nil {
		return nil, err
	}
	return mc, nil
}
