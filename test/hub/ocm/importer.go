package ocm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// klusterletNamespace has the secrets and the agents of a klusterlet.
	klusterletNamespace = "open-cluster-management-agent"
	// configAnnotation names the KlusterletConfig of a ManagedCluster.
	configAnnotation = "agent.open-cluster-management.io/klusterlet-config"
	// noImportAnnotation disables automatic import of a ManagedCluster.
	noImportAnnotation = "import.open-cluster-management.io/disable-auto-import"
	// singleHub is the secret with the only kubeconfig of a klusterlet, and currentHub the one with the last of several.
	singleHub     = "bootstrap-hub-kubeconfig"
	currentHub    = "bootstrap-hub-kubeconfig-current-hub"
	kubeconfigKey = "kubeconfig"
	// multipleHubs is the feature gate of a klusterlet with several kubeconfigs.
	multipleHubs = "MultipleHubs"
)

var klusterletConfigKind = schema.GroupVersionKind{Group: "config.open-cluster-management.io", Version: "v1alpha1", Kind: "KlusterletConfig"}

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

// readOnly are the options of a ManifestWork that the cluster reads but does not apply.
var readOnly = []workv1.ManifestConfigOption{{
	ResourceIdentifier: workv1.ResourceIdentifier{Resource: "secrets", Namespace: klusterletNamespace, Name: "*"},
	UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
}}

// klusterletCRD is the object of the work by which the CRD of Klusterlets exists on a cluster.
const klusterletCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"klusterlets.operator.open-cluster-management.io"}}`

// importCluster writes the works of a klusterlet. That of the CRD has no delete option: the cluster deletes the CRD with it.
func (h *Hub) importCluster(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	crd := []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(klusterletCRD)}}}
	if err := h.writeWork(ctx, cluster, cluster.Name+"-klusterlet-crds", crd, nil); err != nil {
		return err
	}
	manifests, err := h.klusterletManifests(ctx, cluster.Annotations[configAnnotation])
	if err != nil {
		return err
	}
	orphan := &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	return h.writeWork(ctx, cluster, cluster.Name+"-klusterlet", manifests, orphan)
}

// writeWork creates a work, or replaces its whole specification if its objects have changed or become read-only. Delete options are not
// compared.
func (h *Hub) writeWork(ctx context.Context, cluster *clusterv1.ManagedCluster, name string, manifests []workv1.Manifest, option *workv1.DeleteOption) error {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Name, Name: name}}
	err := h.Client.Get(ctx, client.ObjectKeyFromObject(work), work)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	before, exists := work.DeepCopy(), err == nil
	_, disabled := cluster.Annotations[noImportAnnotation]
	frozen := disabled && h.freezes.Load()
	work.Labels = map[string]string{klusterletWork: "true"}
	if !frozen || !exists {
		work.Spec.Workload.Manifests = manifests
	}
	work.Spec.ManifestConfigs = nil
	if frozen {
		work.Spec.ManifestConfigs = readOnly
	}
	switch {
	case !exists:
		work.Spec.DeleteOption = option
		err := h.Client.Create(ctx, work)
		if apierrors.IsNotFound(err) { // the registration controller has not created the namespace yet
			return nil
		}
		return err
	case equality.Semantic.DeepEqual(before, work):
		return nil
	}
	if !frozen {
		work.Spec.DeleteOption = option
	}
	return h.Client.Update(ctx, work)
}

// klusterletManifests returns a Klusterlet and its bootstrap secrets: those that the KlusterletConfig of the cluster adds, and then one with
// the hub's own kubeconfig.
func (h *Hub) klusterletManifests(ctx context.Context, config string) ([]workv1.Manifest, error) {
	others, timeout, err := h.otherHubs(ctx, config)
	if err != nil {
		return nil, err
	}
	klusterlet := &operatorv1.Klusterlet{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "Klusterlet"},
		ObjectMeta: metav1.ObjectMeta{Name: "klusterlet"},
	}
	if len(others) == 0 {
		return manifestsOf(klusterlet, bootstrapSecret(singleHub, h.kubeconfig))
	}
	var secrets []*corev1.Secret
	local := operatorv1.LocalSecretsConfig{HubConnectionTimeoutSeconds: timeout}
	for _, other := range others {
		secrets = append(secrets, bootstrapSecret(other.Name, other.Data[kubeconfigKey]))
	}
	secrets = append(secrets, bootstrapSecret(currentHub, h.kubeconfig))
	objects := []any{klusterlet}
	for _, s := range secrets {
		local.KubeConfigSecrets = append(local.KubeConfigSecrets, operatorv1.KubeConfigSecret{Name: s.Name})
		objects = append(objects, s)
	}
	klusterlet.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
		FeatureGates:         []operatorv1.FeatureGate{{Feature: multipleHubs, Mode: operatorv1.FeatureGateModeTypeEnable}},
		BootstrapKubeConfigs: operatorv1.BootstrapKubeConfigs{Type: operatorv1.LocalSecrets, LocalSecrets: &local},
	}
	return manifestsOf(objects...)
}

// otherHubs reads the bootstrap secrets that a KlusterletConfig adds. A KlusterletConfig that does not exist adds none.
func (h *Hub) otherHubs(ctx context.Context, name string) ([]*corev1.Secret, int32, error) {
	if name == "" {
		return nil, 0, nil
	}
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(klusterletConfigKind)
	err := h.Client.Get(ctx, client.ObjectKey{Name: name}, config)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var spec struct {
		Spec struct {
			MultipleHubsConfig struct {
				BootstrapKubeConfigs operatorv1.BootstrapKubeConfigs `json:"bootstrapKubeConfigs"`
			} `json:"multipleHubsConfig"`
		} `json:"spec"`
	}
	// A KlusterletConfig has the same fields here as a Klusterlet.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(config.Object, &spec); err != nil {
		return nil, 0, fmt.Errorf("read KlusterletConfig %s: %w", name, err)
	}
	local := spec.Spec.MultipleHubsConfig.BootstrapKubeConfigs.LocalSecrets
	if local == nil {
		return nil, 0, nil
	}
	var secrets []*corev1.Secret
	for _, reference := range local.KubeConfigSecrets {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: h.bootstrapNamespace, Name: reference.Name}
		if err := h.Client.Get(ctx, key, secret); err != nil {
			return nil, 0, fmt.Errorf("read the bootstrap secret of KlusterletConfig %s: %w", name, err)
		}
		secrets = append(secrets, secret)
	}
	return secrets, local.HubConnectionTimeoutSeconds, nil
}

func bootstrapSecret(name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: klusterletNamespace, Name: name},
		Data:       map[string][]byte{kubeconfigKey: kubeconfig},
	}
}

func manifestsOf(objects ...any) ([]workv1.Manifest, error) {
	manifests := make([]workv1.Manifest, len(objects))
	for i, o := range objects {
		// As the API server returns it, with sorted keys, so that equal manifests are equal bytes.
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err == nil {
			manifests[i].Raw, err = json.Marshal(fields)
		}
		if err != nil {
			return nil, fmt.Errorf("render the manifest of a klusterlet: %w", err)
		}
	}
	return manifests, nil
}
