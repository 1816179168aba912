package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// Returning returns the source hub of a migration as the hub at which its clusters register when they return. The namespace has their account.
func Returning(source cluster.Hub, namespace, to string) Hub {
	sum := sha256.Sum256([]byte(to))
	account := types.NamespacedName{Namespace: namespace, Name: "godwit-return-" + hex.EncodeToString(sum[:8])}
	return Hub{Hub: source, Account: account, Returns: true}
}

// checkWay refuses a cluster of a source hub that configures klusterlets in another way: only an import controller sends a kubeconfig.
func (h Hub) checkWay(r message.Resources) error {
	imports, err := h.Imports()
	switch {
	case err != nil:
		return err
	case !imports && len(r.SourceKubeconfig) > 0:
		return cluster.Fail(cluster.ReasonHubsDiffer, "the source hub has the import controller, and the target hub has not: install it there, or remove %s from the migration", r.Cluster)
	case imports && len(r.SourceKubeconfig) == 0:
		return cluster.Fail(cluster.ReasonHubsDiffer, "the target hub has the import controller, and the source hub has not: install it there, or remove %s from the migration", r.Cluster)
	case imports:
		return cluster.CheckKubeconfig(r.SourceKubeconfig)
	}
	return nil
}

func (h Hub) work(name string) klusterlet.Work {
	return klusterlet.Work{Client: h.Client, UID: h.UID, Cluster: name, Moved: true}
}

// ownHub gives the klusterlet of a cluster the bootstrap kubeconfig of this hub alone, on a hub without the import controller. It returns what
// it waits for until the ManifestWork that did it is gone.
//
// An agent with one kubeconfig keeps its certificate, and does not use the kubeconfig until it has lost that. So the kubeconfig has no
// credentials: they would be revoked with the migration, or live longer than it.
func (h Hub) ownHub(ctx context.Context, mc *clusterv1.ManagedCluster) (waits string, err error) {
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil {
		return "", err
	}
	w := h.work(mc.Name)
	s, err := w.Find(ctx)
	if err != nil {
		return "", err
	}
	if !original.Has(cluster.AnnotationMigrating) { // the klusterlet is as it is to be
		return w.Remove(ctx, s)
	}
	if s, waits, err = w.Read(ctx); err != nil || waits != "" {
		return waits, err
	}
	own, err := s.Bootstrap("")
	if err != nil {
		return "", fmt.Errorf("make the bootstrap kubeconfig of %s: %w", mc.Name, err)
	}
	// A klusterlet with one kubeconfig must not see that of the source hub.
	if s.Stage != klusterlet.OneHub {
		if waits, err = w.Apply(ctx, s, klusterlet.Config{Stage: klusterlet.Handover, Own: own}); err != nil || waits != "" {
			return waits, err
		}
		if s, err = w.Find(ctx); err != nil {
			return "", err
		}
	}
	if waits, err = w.Apply(ctx, s, klusterlet.Config{Stage: klusterlet.OneHub, Own: own}); err != nil || waits != "" {
		return waits, err
	}
	if err := cluster.Patch(ctx, h.Client, mc, func() error {
		original.Restore(mc, cluster.AnnotationMigrating)
		return original.Save(mc)
	}); err != nil {
		return "", err
	}
	return w.Remove(ctx, s)
}

// releaseWorks lets a hub without the import controller delete the ManifestWorks of a cluster that has left it, such as those of add-ons.
func (h Hub) releaseWorks(ctx context.Context, name string) error {
	if imports, err := h.Imports(); err != nil || imports {
		return err
	}
	return klusterlet.ReleaseWorks(ctx, h.Client, name)
}
