package klusterlet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
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
	// OwnFirst means that the agents try the kubeconfig of the hub itself first, as with the ManifestWork of a migration on a hub without
	// the import controller. The import controller has it last.
	OwnFirst bool
	// Tokens means that the controller acts as the original in issuing tokens: with the kubeconfigs of two hubs it does not find the one
	// that it has issued. Without Tokens, it has one token for ever.
	Tokens *Tokens
}

// Names that the controller gives to the bootstrap secret of its own hub: alone, and beside those of other hubs.
const (
	onlyHub    = "bootstrap-hub-kubeconfig"
	currentHub = "bootstrap-hub-kubeconfig-current-hub"
)

// Works are the ManifestWorks of a klusterlet: with the CRD of Klusterlets, and with the klusterlet and its bootstrap kubeconfigs.
type Works struct{ CRDs, Klusterlet *workv1.ManifestWork }

// labelWorks is the label of these ManifestWorks.
const labelWorks = "import.open-cluster-management.io/klusterlet-works"

// Configure writes the ManifestWorks of a klusterlet, as its KlusterletConfig says, and returns them.
func (i Importer) Configure(ctx context.Context, mc *clusterv1.ManagedCluster) (Works, error) {
	present := &workv1.ManifestWorkList{}
	if err := i.List(ctx, present, client.InNamespace(mc.Name), client.HasLabels{labelWorks}); err != nil {
		return Works{}, err
	}
	_, disabled := mc.Annotations[cluster.AnnotationNoAutoImport]
	frozen := disabled && i.Freezes
	required, err := i.works(ctx, mc) // with the import Secret, also when the works are frozen
	if err != nil {
		return Works{}, err
	}
	if frozen && len(present.Items) > 0 {
		required = nil
		for k := range present.Items {
			required = append(required, present.Items[k].DeepCopy())
		}
	}
	var all Works
	for _, work := range required {
		work.Spec.ManifestConfigs = nil
		if frozen {
			work.Spec.ManifestConfigs = readOnly(work.Spec.Workload.Manifests)
		}
		written, err := i.write(ctx, work, present.Items)
		if err != nil {
			return Works{}, err
		}
		if written.Name == cluster.KlusterletWork(mc.Name) {
			all.Klusterlet = written
		} else {
			all.CRDs = written
		}
	}
	return all, nil
}

// write creates a ManifestWork, or replaces its whole specification if its objects or their options have changed. The controller does not
// compare delete options.
func (i Importer) write(ctx context.Context, work *workv1.ManifestWork, present []workv1.ManifestWork) (*workv1.ManifestWork, error) {
	for k := range present {
		before := &present[k]
		if before.Name != work.Name {
			continue
		}
		if equality.Semantic.DeepEqual(before.Spec.Workload, work.Spec.Workload) && equality.Semantic.DeepEqual(before.Spec.ManifestConfigs, work.Spec.ManifestConfigs) {
			return before, nil
		}
		before.Spec = work.Spec
		return before, i.Update(ctx, before)
	}
	return work, i.Create(ctx, work)
}

// readOnly returns the options with which a cluster reads the objects of a ManifestWork and does not change them.
func readOnly(manifests []workv1.Manifest) []workv1.ManifestConfigOption {
	var all []workv1.ManifestConfigOption
	for _, m := range manifests {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(m.Raw, &o.Object); err != nil {
			panic(err) // made by works
		}
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		all = append(all, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: plural.Group, Resource: plural.Resource, Namespace: o.GetNamespace(), Name: o.GetName()},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
		})
	}
	return all
}

// works returns the ManifestWorks of a klusterlet as they are created. That of the CRD is the last to be deleted, and owns the CRD.
func (i Importer) works(ctx context.Context, mc *clusterv1.ManagedCluster) ([]*workv1.ManifestWork, error) {
	manifests, err := i.manifests(ctx, mc)
	if err != nil {
		return nil, err
	}
	crd, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "klusterlets.operator.open-cluster-management.io"},
	})
	if err != nil {
		return nil, err
	}
	crds, klusterlet := &workv1.ManifestWork{}, &workv1.ManifestWork{}
	for work, name := range map[*workv1.ManifestWork]string{crds: cluster.KlusterletCRDWork(mc.Name), klusterlet: cluster.KlusterletWork(mc.Name)} {
		work.ObjectMeta = metav1.ObjectMeta{Namespace: mc.Name, Name: name, Labels: map[string]string{labelWorks: "true"}}
	}
	crds.Annotations = map[string]string{clusterv1.CleanupPriorityAnnotationKey: "100"}
	crds.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: crd}}}
	klusterlet.Spec.Workload.Manifests = manifests
	klusterlet.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	return []*workv1.ManifestWork{crds, klusterlet}, nil
}

// manifests returns the Klusterlet and its bootstrap secrets: those of the hubs that the KlusterletConfig adds,
// and then that of the hub itself.
func (i Importer) manifests(ctx context.Context, mc *clusterv1.ManagedCluster) ([]workv1.Manifest, error) {
	others, timeout, err := i.otherHubs(ctx, mc.Annotations[cluster.AnnotationKlusterletConfig])
	if err != nil {
		return nil, err
	}
	name := onlyHub
	if len(others) > 0 {
		name = currentHub
	}
	own, err := i.ownKubeconfig(ctx, mc.Name, name)
	if err != nil {
		return nil, err
	}
	klusterlet := &operatorv1.Klusterlet{
		TypeMeta: metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "Klusterlet"}, ObjectMeta: metav1.ObjectMeta{Name: "klusterlet"},
	}
	objects := []any{klusterlet}
	local := &operatorv1.LocalSecretsConfig{HubConnectionTimeoutSeconds: timeout}
	secrets := slices.Concat(others, []*corev1.Secret{bootstrapSecret(name, own)})
	if i.OwnFirst {
		slices.Reverse(secrets)
	}
	for _, s := range secrets {
		objects = append(objects, s)
		local.KubeConfigSecrets = append(local.KubeConfigSecrets, operatorv1.KubeConfigSecret{Name: s.Name})
	}
	if len(others) > 0 {
		klusterlet.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			FeatureGates:         []operatorv1.FeatureGate{{Feature: "MultipleHubs", Mode: operatorv1.FeatureGateModeTypeEnable}},
			BootstrapKubeConfigs: operatorv1.BootstrapKubeConfigs{Type: operatorv1.LocalSecrets, LocalSecrets: local},
		}
	}
	return manifestsOf(objects...)
}

// otherHubs reads the bootstrap secrets that a KlusterletConfig adds, and how long an agent tries to reach a hub. A KlusterletConfig that does not
// exist, or that the hub does not serve, adds none.
func (i Importer) otherHubs(ctx context.Context, name string) (secrets []*corev1.Secret, timeout int32, err error) {
	if name == "" {
		return nil, 0, nil
	}
	config := cluster.KlusterletConfig(name)
	if err := i.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil, 0, nil
		}
		return nil, 0, err
	}
	var spec struct {
		Spec struct {
			MultipleHubsConfig struct {
				// A KlusterletConfig has the same fields here as a Klusterlet.
				BootstrapKubeConfigs operatorv1.BootstrapKubeConfigs `json:"bootstrapKubeConfigs"`
			} `json:"multipleHubsConfig"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(config.Object, &spec); err != nil {
		return nil, 0, fmt.Errorf("read KlusterletConfig %s: %w", name, err)
	}
	local := spec.Spec.MultipleHubsConfig.BootstrapKubeConfigs.LocalSecrets
	if local == nil {
		return nil, 0, nil
	}
	for _, reference := range local.KubeConfigSecrets {
		secret := &corev1.Secret{}
		if err := i.Get(ctx, client.ObjectKey{Namespace: i.BootstrapNamespace, Name: reference.Name}, secret); err != nil {
			return nil, 0, fmt.Errorf("read the bootstrap secret of KlusterletConfig %s: %w", name, err)
		}
		secrets = append(secrets, bootstrapSecret(secret.Name, secret.Data[cluster.KubeconfigKey]))
	}
	return secrets, local.HubConnectionTimeoutSeconds, nil
}

func (i Importer) kubeconfig() ([]byte, error) {
	if i.Kubeconfig != nil {
		return i.Kubeconfig, nil
	}
	return cluster.Kubeconfig(i.Server, nil, "token of "+i.Server)
}

// bootstrapSecret returns a Secret with the kubeconfig of a hub, as a cluster has it.
func bootstrapSecret(name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "open-cluster-management-agent", Name: name},
		Data:       map[string][]byte{cluster.KubeconfigKey: kubeconfig},
	}
}

// manifestsOf has the keys in the order in which the API server returns them, so that an equal ManifestWork is not updated.
func manifestsOf(objects ...any) ([]workv1.Manifest, error) {
	manifests := make([]workv1.Manifest, len(objects))
	for k, o := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err == nil {
			manifests[k].Raw, err = json.Marshal(fields)
		}
		if err != nil {
			return nil, fmt.Errorf("render the manifest of a klusterlet: %w", err)
		}
	}
	return manifests, nil
}

// SetApplied simulates the work agent of a cluster.
func (i Importer) SetApplied(ctx context.Context, works ...*workv1.ManifestWork) error {
	for _, work := range works {
		if !meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: work.Generation,
		}) {
			continue
		}
		if err := i.Status().Update(ctx, work); err != nil {
			return err
		}
	}
	return nil
}
