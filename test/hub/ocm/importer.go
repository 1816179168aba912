package ocm

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

const (
	// klusterletNamespace has the secrets and the agents of a klusterlet.
	klusterletNamespace = "open-cluster-management-agent"
	// singleHub is the secret with the only kubeconfig of a klusterlet.
	singleHub     = "bootstrap-hub-kubeconfig"
	kubeconfigKey = "kubeconfig"
	// multipleHubs is the feature gate of a klusterlet with several kubeconfigs.
	multipleHubs = "MultipleHubs"
)

// StopImports stops the import controller of the hub, to simulate one that is slow or down. StartImports starts it again.
func (h *Hub) StopImports() { h.importer.stop() }

// StartImports starts the import controller after StopImports.
func (h *Hub) StartImports() {
	h.importer = startLoop(h.Name+": import controller", h.log, h.importClusters)
}

// FreezeImports makes the import controller of the hub act as in backplane 5.0 and later, until the test calls thaw: while
// automatic import of a cluster is disabled, the controller does not change the configuration of its klusterlet, and the
// cluster does not apply it.
func (h *Hub) FreezeImports() (thaw func()) {
	h.freezes.Store(true)
	return func() { h.freezes.Store(false) }
}

// importClusters simulates the import controller: it writes a ManifestWork for the klusterlet of each ManagedCluster. An error
// for one cluster does not stop the others.
func (h *Hub) importClusters(ctx context.Context) error {
	clusters := &clusterv1.ManagedClusterList{}
	if err := h.Client.List(ctx, clusters); err != nil {
		return err
	}
	var errs []error
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		var err error
		if cluster.DeletionTimestamp.IsZero() {
			err = h.importCluster(ctx, cluster)
		} else {
			err = h.Client.DeleteAllOf(ctx, &workv1.ManifestWork{}, client.InNamespace(cluster.Name), client.MatchingLabels{klusterletWork: "true"})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", cluster.Name, err))
		}
	}
	return errors.Join(errs...)
}

// klusterletWork is the label of the works that configure klusterlets.
const klusterletWork = "import.open-cluster-management.io/klusterlet-works"

// importCluster writes the works of a klusterlet.
func (h *Hub) importCluster(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	_, err := klusterlet.Importer{
		Client: h.Client, Server: h.Config().Host, Kubeconfig: h.kubeconfig, BootstrapNamespace: h.bootstrapNamespace, Freezes: h.freezes.Load(),
	}.Configure(ctx, cluster)
	return err
}

func bootstrapSecret(name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: klusterletNamespace, Name: name},
		Data:       map[string][]byte{kubeconfigKey: kubeconfig},
	}
}
