package klusterlet

import operatorv1 "open-cluster-management.io/api/operator/v1"

// NamespaceOf returns the namespace of the agents of a klusterlet.
func NamespaceOf(k *operatorv1.Klusterlet) string {
	if n := k.Spec.Namespace; n != "" {
		return n
	}
	return DefaultNamespace
}

// Unsuitable returns why no bootstrap kubeconfig brings a klusterlet to another hub, or empty.
func Unsuitable(k *operatorv1.Klusterlet) string {
	driver := ""
	if r := k.Spec.RegistrationConfiguration; r != nil {
		driver = r.RegistrationDriver.AuthType
	}
	return unsuitable(k.Spec.DeployOption.Mode, driver)
}

// KnowsSeveral reports whether a klusterlet has the bootstrap kubeconfigs of several hubs, and returns the Secrets that have them.
func KnowsSeveral(k *operatorv1.Klusterlet) (secrets []string, several bool) {
	r := k.Spec.RegistrationConfiguration
	if r == nil || r.BootstrapKubeConfigs.Type != operatorv1.LocalSecrets && modeOf(r.FeatureGates, multipleHubs) != operatorv1.FeatureGateModeTypeEnable {
		return nil, false
	}
	if local := r.BootstrapKubeConfigs.LocalSecrets; local != nil {
		for _, s := range local.KubeConfigSecrets {
			secrets = append(secrets, s.Name)
		}
	}
	return secrets, true
}

// SetOneHub gives a klusterlet the bootstrap kubeconfig in Secret [OwnSecret] alone.
func SetOneHub(k *operatorv1.Klusterlet) {
	if r := k.Spec.RegistrationConfiguration; r != nil {
		r.FeatureGates = gatesIn(r.FeatureGates, OneHub)
		r.BootstrapKubeConfigs = operatorv1.BootstrapKubeConfigs{Type: operatorv1.None}
	}
}
