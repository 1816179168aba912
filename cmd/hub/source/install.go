package source

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/objectname"
)

// InstallBootstrap adds the kubeconfig of the target hub to the klusterlets of clusters. It is done for a cluster when
// its klusterlet has it.
func (h Hub) InstallBootstrap(ctx context.Context, clusters []string, kubeconfig []byte) (cluster.Result, error) {
	if err := cluster.CheckKubeconfig(kubeconfig); err != nil {
		return cluster.Result{}, err
	}
	secret := h.BootstrapSecret(h.secretName())
	if err := cluster.Share(ctx, h.Client, secret, h.UID, func() error {
		// Another migration may have written a kubeconfig later, or earlier with longer timeouts.
		if !cluster.SharesWithOthers(secret, h.UID) && !cluster.ExpiresLater(secret.Data[cluster.KubeconfigKey], kubeconfig) {
			secret.Data = map[string][]byte{cluster.KubeconfigKey: kubeconfig}
		}
		return nil
	}); err != nil {
		return cluster.Result{}, fmt.Errorf("install the bootstrap secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	h.Hub = h.WithBatchReads(clusters)
	if err := h.shareConfigs(ctx, clusters); err != nil {
		return cluster.Result{}, err
	}
	installed := secret.Data[cluster.KubeconfigKey]
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		return h.install(ctx, name, installed)
	})
}

func (h Hub) install(ctx context.Context, name string, kubeconfig []byte) (waits string, err error) {
	mc, err := h.cluster(ctx, name)
	if err != nil {
		return "", err
	}
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil {
		return "", err
	}
	if !original.Has(cluster.AnnotationMigrating) {
		if err := h.KeepToken(ctx, name); err != nil {
			return "", err
		}
	}
	config := h.configName(userConfig(mc, original))
	if err := cluster.Patch(ctx, h.Client, mc, func() error {
		original.Replace(mc, cluster.AnnotationKlusterletConfig, config)
		original.Replace(mc, cluster.AnnotationMigrating, h.UID)
		return original.Save(mc)
	}); err != nil || original.Has(cluster.AnnotationNoAutoImport) {
		return "", err
	}
	k, err := h.klusterlet(ctx, name)
	if err != nil {
		return "", err
	}
	unapplied, err := h.OrphanKlusterlet(ctx, name)
	if err != nil {
		return "", err
	}
	missing := ""
	if !bytes.Equal(k.Kubeconfig(h.secretName()), kubeconfig) || k.OwnKubeconfig() == nil {
		missing = fmt.Sprintf("the import controller has not written the kubeconfigs of both hubs into ManifestWork %s", k.Name())
	}
	if waits := cmp.Or(h.AwaitKlusterlet(k, missing), unapplied); waits != "" {
		return waits, nil
	}
	if waits, err := h.orphanWorks(ctx, name); err != nil || waits != "" {
		return waits, err
	}
	// This annotation comes last: with it, import controllers since backplane 5.0 of Open Cluster Management no longer
	// update klusterlets, and clusters apply nothing of their works any more.
	return "", cluster.Patch(ctx, h.Client, mc, func() error {
		original.Replace(mc, cluster.AnnotationNoAutoImport, "")
		return original.Save(mc)
	})
}

// userConfig returns the name of the KlusterletConfig that the user has chosen for a cluster.
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

// secretName returns the name of the Secret with the kubeconfig of the target hub.
func (h Hub) secretName() string { return objectname.BootstrapSecret(h.To) }

// configName returns the name of the migration's KlusterletConfig for clusters with a user's KlusterletConfig, or with
// none.
func (h Hub) configName(user string) string { return objectname.KlusterletConfig(h.To, user) }

// shareConfigs writes one KlusterletConfig of the migration for each that users have chosen for the clusters.
func (h Hub) shareConfigs(ctx context.Context, clusters []string) error {
	users := map[string]bool{}
	for _, name := range clusters {
		mc, err := h.Find(ctx, name)
		if err != nil {
			return err
		}
		if mc == nil {
			continue // the cluster fails by itself
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

func (h Hub) shareConfig(ctx context.Context, user string) error {
	spec, err := cluster.TwoHubs{User: user, Secret: h.secretName(), Reconnect: h.Reconnect}.Spec(ctx, h.Client)
	if err != nil {
		return err
	}
	ours := cluster.KlusterletConfig(h.configName(user))
	return cluster.Share(ctx, h.Client, ours, h.UID, func() error {
		ours.Object["spec"] = spec
		return nil
	})
}

// removeShared deletes the bootstrap secret and the KlusterletConfigs when no cluster of this migration and no other
// migration needs them.
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
		if !slices.Contains(cluster.Owners(&configs.Items[i]), h.UID) {
			continue
		}
		if err := cluster.Unshare(ctx, h.Client, &configs.Items[i], h.UID); err != nil {
			return fmt.Errorf("remove KlusterletConfig %s: %w", configs.Items[i].GetName(), err)
		}
	}
	secret := h.BootstrapSecret(h.secretName())
	if err := cluster.Unshare(ctx, h.Client, secret, h.UID); err != nil {
		return fmt.Errorf("remove the bootstrap secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}
