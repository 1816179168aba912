package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/hub/cluster"
)

const (
	// kubeconfigKey is where the import controller reads a kubeconfig in a secret.
	kubeconfigKey = "kubeconfig"
	// maxName of an object.
	maxName = 253
)

// InstallBootstrap gives the klusterlets of clusters the kubeconfig of the target hub beside
// their own, and is done for a cluster when its klusterlet has it.
func (h Hub) InstallBootstrap(ctx context.Context, clusters []string, kubeconfig []byte) (cluster.Result, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.bootstrapNamespace(), Name: h.secretName()}}
	if err := cluster.Share(ctx, h.Client, secret, h.UID, func() error {
		secret.Data = map[string][]byte{kubeconfigKey: kubeconfig}
		return nil
	}); err != nil {
		return cluster.Result{}, fmt.Errorf("install the bootstrap secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	if err := h.shareConfigs(ctx, clusters); err != nil {
		return cluster.Result{}, err
	}
	return cluster.Each(ctx, clusters, h.install)
}

func (h Hub) install(ctx context.Context, name string) (waits string, err error) {
	mc, err := h.cluster(ctx, name)
	if err != nil {
		return "", err
	}
	// Before the patch: the import controller writes the work anew after it.
	work, err := h.klusterletWork(ctx, name)
	if err != nil {
		return "", err
	}
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil {
		return "", err
	}
	config := h.configName(userConfig(mc, original))
	if err := cluster.Patch(ctx, h.Client, mc, func() error {
		if original.Work == nil {
			original.Work = &cluster.Generation{UID: work.UID, Generation: work.Generation}
		}
		original.Replace(mc, cluster.AnnotationKlusterletConfig, config)
		original.Replace(mc, cluster.AnnotationMigrating, h.UID)
		original.Replace(mc, cluster.AnnotationNoAutoImport, "")
		return original.Save(mc)
	}); err != nil {
		return "", err
	}
	return hasBootstrap(work, *original.Work), nil
}

// hasBootstrap returns what is missing until the klusterlet has the configuration that
// was set when the work was as it is in before.
func hasBootstrap(work *workv1.ManifestWork, before cluster.Generation) (waits string) {
	if work.UID == before.UID && work.Generation <= before.Generation {
		return fmt.Sprintf("the import controller has not written ManifestWork %s/%s anew", work.Namespace, work.Name)
	}
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
	if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != work.Generation {
		return fmt.Sprintf("the cluster has not applied generation %d of ManifestWork %s/%s", work.Generation, work.Namespace, work.Name)
	}
	return ""
}

// userConfig is the KlusterletConfig that the user has chosen for a cluster.
func userConfig(mc *clusterv1.ManagedCluster, original cluster.Original) string {
	replaced, ok := original.Annotations[cluster.AnnotationKlusterletConfig]
	switch {
	case !ok:
		return mc.Annotations[cluster.AnnotationKlusterletConfig]
	case replaced.Was == nil:
		return ""
	}
	return *replaced.Was
}

// secretName is that of the kubeconfig of the target hub.
func (h Hub) secretName() string { return "bootstrap-" + h.To }

// configName is the KlusterletConfig of the migration, for clusters of which the user has
// chosen one or none.
func (h Hub) configName(user string) string {
	name := "migration-" + h.To
	if user == "" {
		return name
	}
	if longer := name + "-" + user; len(longer) <= maxName {
		return longer
	}
	sum := sha256.Sum256([]byte(user))
	return name + "-" + hex.EncodeToString(sum[:8])
}

// shareConfigs writes a KlusterletConfig for each that the clusters have.
func (h Hub) shareConfigs(ctx context.Context, clusters []string) error {
	users := map[string]bool{}
	for _, name := range clusters {
		mc := &clusterv1.ManagedCluster{}
		if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, mc); apierrors.IsNotFound(err) {
			continue // the cluster fails by itself
		} else if err != nil {
			return err
		}
		if original, err := cluster.OriginalOf(mc, h.UID); err == nil {
			users[userConfig(mc, original)] = true
		}
	}
	for _, user := range slices.Sorted(maps.Keys(users)) {
		if err := h.shareConfig(ctx, user); err != nil {
			return fmt.Errorf("install KlusterletConfig %s: %w", h.configName(user), err)
		}
	}
	return nil
}

// shareConfig keeps what the user has set, such as the proxy by which a cluster reaches
// hubs.
func (h Hub) shareConfig(ctx context.Context, user string) error {
	spec := map[string]any{}
	if user != "" {
		theirs := newConfig(user)
		if err := client.IgnoreNotFound(h.Client.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)); err != nil {
			return err
		}
		if found, ok, _ := unstructured.NestedMap(theirs.Object, "spec"); ok {
			spec = found
		}
	}
	spec["multipleHubsConfig"] = map[string]any{
		// The current hub stays first, so that an agent returns to it.
		"genBootstrapKubeConfigStrategy": "IncludeCurrentHub",
		"bootstrapKubeConfigs": map[string]any{
			"type": "LocalSecrets",
			"localSecretsConfig": map[string]any{
				"kubeConfigSecrets":           []any{map[string]any{"name": h.secretName()}},
				"hubConnectionTimeoutSeconds": int64(h.Reconnect / time.Second),
			},
		},
	}
	ours := newConfig(h.configName(user))
	return cluster.Share(ctx, h.Client, ours, h.UID, func() error {
		ours.Object["spec"] = spec
		return nil
	})
}

func newConfig(name string) *unstructured.Unstructured {
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(cluster.KlusterletConfigKind)
	config.SetName(name)
	return config
}

// removeShared deletes the bootstrap secret and the KlusterletConfigs when no cluster of
// the migration needs them, and no other migration does.
func (h Hub) removeShared(ctx context.Context) error {
	clusters := &clusterv1.ManagedClusterList{}
	if err := h.Client.List(ctx, clusters); err != nil {
		return err
	}
	for i := range clusters.Items {
		if cluster.HasOriginal(&clusters.Items[i], h.UID) {
			return nil
		}
	}
	configs := &unstructured.UnstructuredList{}
	configs.SetGroupVersionKind(cluster.KlusterletConfigKind.GroupVersion().WithKind(cluster.KlusterletConfigKind.Kind + "List"))
	if err := h.Client.List(ctx, configs); err != nil {
		return err
	}
	for i := range configs.Items {
		if !strings.HasPrefix(configs.Items[i].GetName(), h.configName("")) {
			continue
		}
		if err := cluster.Unshare(ctx, h.Client, &configs.Items[i], h.UID); err != nil {
			return fmt.Errorf("remove KlusterletConfig %s: %w", configs.Items[i].GetName(), err)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.bootstrapNamespace(), Name: h.secretName()}}
	if err := cluster.Unshare(ctx, h.Client, secret, h.UID); err != nil {
		return fmt.Errorf("remove the bootstrap secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}
