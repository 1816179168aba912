package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KubeconfigKey is where a bootstrap secret has its kubeconfig.
const KubeconfigKey = "kubeconfig"

// Names that the import controller gives to the bootstrap secret of its own hub: beside those of other hubs, and alone.
const (
	currentHubSecret = "bootstrap-hub-kubeconfig-current-hub" //nolint:gosec // a name
	onlyHubSecret    = "bootstrap-hub-kubeconfig"             //nolint:gosec // a name
)

// Klusterlet is the klusterlet configuration of a cluster in the ManifestWork that the import controller writes.
type Klusterlet struct {
	work        *workv1.ManifestWork
	kubeconfigs map[string][]byte // by the name of the bootstrap secret
}

// KlusterletOf reads the ManifestWork of a cluster, or returns false if there is none.
func KlusterletOf(ctx context.Context, c client.Reader, cluster string) (Klusterlet, bool, error) {
	k := Klusterlet{work: &workv1.ManifestWork{}, kubeconfigs: map[string][]byte{}}
	k.work.Namespace, k.work.Name = cluster, KlusterletWork(cluster)
	err := c.Get(ctx, client.ObjectKeyFromObject(k.work), k.work)
	if apierrors.IsNotFound(err) {
		return k, false, nil
	}
	if err != nil {
		return k, false, err
	}
	for i, manifest := range k.work.Spec.Workload.Manifests {
		kind := metav1.TypeMeta{}
		if err := json.Unmarshal(manifest.Raw, &kind); err != nil {
			return k, false, fmt.Errorf("read manifest %d of ManifestWork %s: %w", i, k.Name(), err)
		}
		if kind.APIVersion != "v1" || kind.Kind != "Secret" {
			continue
		}
		secret := corev1.Secret{}
		if err := json.Unmarshal(manifest.Raw, &secret); err != nil {
			return k, false, fmt.Errorf("read manifest %d of ManifestWork %s: %w", i, k.Name(), err)
		}
		if kubeconfig, ok := secret.Data[KubeconfigKey]; ok {
			k.kubeconfigs[secret.Name] = kubeconfig
		}
	}
	return k, true, nil
}

// Name returns namespace/name of the ManifestWork, for messages.
func (k Klusterlet) Name() string { return k.work.Namespace + "/" + k.work.Name }

// Kubeconfig returns the kubeconfig of a bootstrap secret, or nil if the hub configures none
// of this name.
func (k Klusterlet) Kubeconfig(secret string) []byte { return k.kubeconfigs[secret] }

// OwnKubeconfig returns the kubeconfig of the hub itself, or nil.
func (k Klusterlet) OwnKubeconfig() []byte {
	if own := k.kubeconfigs[currentHubSecret]; own != nil {
		return own
	}
	return k.kubeconfigs[onlyHubSecret]
}

// AwaitKlusterlet returns why the klusterlet does not have what the caller needs, or empty. missing is what its ManifestWork does not have yet.
func (h Hub) AwaitKlusterlet(k Klusterlet, missing string) string {
	name := k.work.Namespace
	if missing == "" {
		missing = k.readOnly()
	}
	if missing != "" {
		h.Written.forget(name)
		return missing
	}
	if since := h.Written.since(name, k.work.Generation); !IsApplied(k.work, since) {
		return fmt.Sprintf("the cluster has not applied generation %d of ManifestWork %s", since, k.Name())
	}
	return ""
}

// readOnly returns why the cluster does not apply the ManifestWork, or empty. OCM reports a read-only work as applied although it changes
// nothing at the cluster.
func (k Klusterlet) readOnly() string {
	for _, c := range k.work.Spec.ManifestConfigs {
		if c.UpdateStrategy != nil && c.UpdateStrategy.Type == workv1.UpdateStrategyTypeReadOnly {
			return fmt.Sprintf("ManifestWork %s is read-only: the import controller changes that, unless ManagedCluster %s has annotation %s of a user",
				k.Name(), k.work.Namespace, AnnotationNoAutoImport)
		}
	}
	return ""
}
