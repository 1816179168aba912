package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// While a klusterlet has the kubeconfigs of two hubs, the import controller does not find the token that it has issued: it looks for it under
// the name of a single kubeconfig. It issues another one about twice a second, and each is a new generation of the ManifestWork. Before it
// issues a token, it looks for a Secret with a token of the cluster's bootstrap account, as Kubernetes had them before release 1.24. The migration
// shows it there the token that it has issued last. A cluster may depend on this token, so that nothing revokes it.

const (
	accountSuffix = "-bootstrap-sa"
	maxAccount    = 63
)

// bootstrapAccount returns the name of the ServiceAccount by whose token the import controller lets a cluster register.
func bootstrapAccount(cluster string) string {
	return cluster[:min(len(cluster), maxAccount-len(accountSuffix))] + accountSuffix
}

// token returns an empty Secret that the import controller finds by its name, before it issues a token.
func token(cluster string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: bootstrapAccount(cluster) + "-token-godwit"}}
}

// KeepToken has the import controller keep the token that it has issued for a cluster while the klusterlet has the kubeconfigs of two hubs, until
// [Hub.RemoveToken]. It does nothing while the hub has no import Secret of the cluster, or no ManifestWork of its klusterlet.
func (h Hub) KeepToken(ctx context.Context, cluster string) error {
	if kept, err := h.FindOwned(ctx, token(cluster)); err != nil || kept {
		return err
	}
	imported := &corev1.Secret{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: resource.ImportSecret(cluster)}, imported); err != nil {
		return client.IgnoreNotFound(err)
	}
	k, found, err := KlusterletOf(ctx, h.Client, cluster)
	if err != nil || !found {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(k.OwnKubeconfig())
	if err != nil || config.BearerToken == "" {
		return nil //nolint:nilerr // a kubeconfig without a token; an action that needs it fails
	}
	secret := token(cluster)
	secret.Type = corev1.SecretTypeServiceAccountToken
	secret.Labels = map[string]string{LabelMigration: h.UID}
	secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: bootstrapAccount(cluster)}
	secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(config.BearerToken)}
	if err := h.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// RemoveToken removes the Secret of [Hub.KeepToken]. The token stays valid.
func (h Hub) RemoveToken(ctx context.Context, cluster string) error {
	secret := token(cluster)
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !IsOwned(secret, h.UID) {
		return nil
	}
	if err := Delete(ctx, h.Client, secret); err != nil {
		return fmt.Errorf("delete Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// tokenExpiration is where the import controller writes when the token in an import Secret expires. It does not for one that it has found in a Secret.
const tokenExpiration = "expiration"

// RenewToken removes the Secret of [Hub.KeepToken], and has the import controller issue another token: of this one it does not know when it
// expires. The controller writes an import Secret again that does not exist.
func (h Hub) RenewToken(ctx context.Context, cluster string) error {
	if err := h.RemoveToken(ctx, cluster); err != nil {
		return err
	}
	imported := &corev1.Secret{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: resource.ImportSecret(cluster)}, imported); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, expires := imported.Data[tokenExpiration]; expires {
		return nil
	}
	if err := Delete(ctx, h.Client, imported); err != nil {
		return fmt.Errorf("delete Secret %s: %w", client.ObjectKeyFromObject(imported), err)
	}
	return nil
}
