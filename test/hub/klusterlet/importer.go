package klusterlet

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Importer simulates the import controller of a hub.
type Importer struct {
	client.Client
	// Server is the address of the hub.
	Server string
	// Kubeconfig is the bootstrap kubeconfig of the hub. The default has a token that no API server accepts.
	Kubeconfig []byte
	// BootstrapNamespace has the bootstrap secrets of other hubs.
	BootstrapNamespace string
	// Freezes means that the controller acts as in backplane 5.0 and later: it does not change
	// the klusterlet of a cluster whose automatic import is disabled.
	Freezes bool
}

// Configure writes the ManifestWork of a klusterlet, as its KlusterletConfig says, and returns it.
func (i Importer) Configure(ctx context.Context, mc *clusterv1.ManagedCluster) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: mc.Name, Name: cluster.KlusterletWork(mc.Name)}}
	err := i.Get(ctx, client.ObjectKeyFromObject(work), work)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	exists, before := err == nil, work.DeepCopy()
	_, disabled := mc.Annotations[cluster.AnnotationNoAutoImport]
	frozen := disabled && i.Freezes
	if !frozen || !exists {
		if work.Spec.Workload.Manifests, err = i.manifests(ctx, mc); err != nil {
			return nil, err
		}
	}
	work.Spec.ManifestConfigs = nil
	if frozen {
		work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "secrets", Namespace: "open-cluster-management-agent", Name: "all"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
		}}
	}
	switch {
	case !exists:
		return work, i.Create(ctx, work)
	case equality.Semantic.DeepEqual(before.Spec, work.Spec):
		return work, nil
	}
	return work, i.Update(ctx, work)
}

// manifests returns the bootstrap secrets of the hub, and of the hubs that the KlusterletConfig adds.
func (i Importer) manifests(ctx context.Context, mc *clusterv1.ManagedCluster) ([]workv1.Manifest, error) {
	own, err := i.kubeconfig()
	if err != nil {
		return nil, err
	}
	config := cluster.KlusterletConfig(mc.Annotations[cluster.AnnotationKlusterletConfig])
	if config.GetName() != "" {
		err := i.Get(ctx, client.ObjectKeyFromObject(config), config)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
	}
	others, _, _ := unstructured.NestedSlice(config.Object, "spec", "multipleHubsConfig", "bootstrapKubeConfigs", "localSecretsConfig", "kubeConfigSecrets")
	name := "bootstrap-hub-kubeconfig"
	if len(others) > 0 {
		name = "bootstrap-hub-kubeconfig-current-hub"
	}
	manifest, err := bootstrapManifest(name, own)
	if err != nil {
		return nil, err
	}
	manifests := []workv1.Manifest{manifest}
	for _, other := range others {
		fields, _ := other.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "name")
		secret := &corev1.Secret{}
		if err := i.Get(ctx, client.ObjectKey{Namespace: i.BootstrapNamespace, Name: name}, secret); err != nil {
			return nil, err
		}
		manifest, err := bootstrapManifest(name, secret.Data[cluster.KubeconfigKey])
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, manifest)
	}
	return manifests, nil
}

func (i Importer) kubeconfig() ([]byte, error) {
	if i.Kubeconfig != nil {
		return i.Kubeconfig, nil
	}
	return cluster.Kubeconfig(i.Server, nil, "token of "+i.Server)
}

// bootstrapManifest has the keys in the order in which the API server returns them, so that an equal ManifestWork is not updated.
func bootstrapManifest(name string, kubeconfig []byte) (workv1.Manifest, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "open-cluster-management-agent"},
		"data": map[string]any{cluster.KubeconfigKey: kubeconfig},
	})
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: text}}, err
}

// SetApplied simulates the work agent of a cluster.
func (i Importer) SetApplied(ctx context.Context, work *workv1.ManifestWork) error {
	if !meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
		Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: work.Generation,
	}) {
		return nil
	}
	return i.Status().Update(ctx, work)
}
