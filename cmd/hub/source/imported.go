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

// imported is a hub whose import controller configures klusterlets, as KlusterletConfigs say.
type imported struct{ Hub }

func (h imported) share(ctx context.Context, clusters []string, kubeconfig []byte) (installed []byte, waits string, err error) {
	secret := h.BootstrapSecret(h.secretName())
	if err := cluster.Share(ctx, h.Client, secret, h.UID, func() error {
		// Another migration may have written a kubeconfig later, or earlier with longer timeouts.
		if !cluster.SharesWithOthers(secret, h.UID) && !cluster.ExpiresLater(secret.Data[cluster.KubeconfigKey], kubeconfig) {
			secret.Data = map[string][]byte{cluster.KubeconfigKey: kubeconfig}
		}
		return nil
	}); err != nil {
		return nil, "", fmt.Errorf("install the bootstrap secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return secret.Data[cluster.KubeconfigKey], "", h.shareConfigs(ctx, clusters)
}

func (h imported) install(ctx context.Context, mc *clusterv1.ManagedCluster, kubeconfig []byte) (waits string, err error) {
	name := mc.Name
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
func (h imported) secretName() string { return objectname.BootstrapSecret(h.To) }

// configName returns the name of the migration's KlusterletConfig for clusters with a user's KlusterletConfig, or with
// none.
func (h imported) configName(user string) string { return objectname.KlusterletConfig(h.To, user) }

// shareConfigs writes one KlusterletConfig of the migration for each that users have chosen for the clusters.
func (h imported) shareConfigs(ctx context.Context, clusters []string) error {
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

func (h imported) shareConfig(ctx context.Context, user string) error {
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

// unshare deletes the bootstrap secret and the KlusterletConfigs.
func (h imported) unshare(ctx context.Context) error {
	if needed, err := h.needed(ctx); err != nil || needed {
		return err
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

// revert restores the annotations of a cluster. The import controller then removes the bootstrap kubeconfig of the target hub from its
// klusterlet. The ManifestWorks own the klusterlet again.
func (h imported) revert(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil {
		return err
	}
	if err := cluster.Patch(ctx, h.Client, mc, func() error {
		for _, annotation := range []string{cluster.AnnotationKlusterletConfig, cluster.AnnotationMigrating, cluster.AnnotationNoAutoImport} {
			original.Restore(mc, annotation)
		}
		return original.Save(mc)
	}); err != nil {
		return err
	}
	return h.OwnKlusterlet(ctx, mc.Name)
}

// end has the import controller issue the cluster another token.
func (h imported) end(ctx context.Context, name string) (waits string, err error) {
	return "", h.RenewToken(ctx, name)
}
