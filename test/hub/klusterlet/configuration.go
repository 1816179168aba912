package klusterlet

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Configuration is what the ManifestWork of a klusterlet configures.
type Configuration struct {
	// Kubeconfigs are the bootstrap kubeconfigs in the order in which the agents try them.
	Kubeconfigs [][]byte
	// Timeout in seconds is how long the agents try to reach a hub; 0 means that the Klusterlet has none.
	Timeout int32
}

// ConfigurationOf reads the ManifestWork of a klusterlet.
func ConfigurationOf(work *workv1.ManifestWork) (Configuration, error) {
	klusterlet := &operatorv1.Klusterlet{}
	secrets := map[string][]byte{}
	for _, m := range work.Spec.Workload.Manifests {
		secret, err := read(m.Raw, klusterlet)
		if err != nil {
			return Configuration{}, fmt.Errorf("read ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
		}
		if secret != nil {
			secrets[secret.Name] = secret.Data[cluster.KubeconfigKey]
		}
	}
	names, timeout := bootstrapSecrets(klusterlet)
	c := Configuration{Timeout: timeout}
	for _, name := range names {
		kubeconfig, ok := secrets[name]
		if !ok {
			return Configuration{}, fmt.Errorf("the Klusterlet names Secret %s, which ManifestWork %s/%s does not have", name, work.Namespace, work.Name)
		}
		c.Kubeconfigs = append(c.Kubeconfigs, kubeconfig)
	}
	return c, nil
}

// read returns a bootstrap secret, reads a Klusterlet into the argument, and ignores other objects.
func read(manifest []byte, klusterlet *operatorv1.Klusterlet) (*corev1.Secret, error) {
	kind := metav1.TypeMeta{}
	if err := json.Unmarshal(manifest, &kind); err != nil {
		return nil, err
	}
	switch kind.Kind {
	case "Klusterlet":
		return nil, json.Unmarshal(manifest, klusterlet)
	case "Secret":
		secret := &corev1.Secret{}
		if err := json.Unmarshal(manifest, secret); err != nil || len(secret.Data[cluster.KubeconfigKey]) == 0 {
			return nil, err
		}
		return secret, nil
	}
	return nil, nil
}

// bootstrapSecrets returns the names of a Klusterlet's bootstrap secrets in their order, and its timeout. A Klusterlet without a list has one.
func bootstrapSecrets(k *operatorv1.Klusterlet) (names []string, timeout int32) {
	c := k.Spec.RegistrationConfiguration
	if c == nil || c.BootstrapKubeConfigs.LocalSecrets == nil {
		return []string{onlyHub}, 0
	}
	for _, s := range c.BootstrapKubeConfigs.LocalSecrets.KubeConfigSecrets {
		names = append(names, s.Name)
	}
	return names, c.BootstrapKubeConfigs.LocalSecrets.HubConnectionTimeoutSeconds
}
