package cluster

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns the kubeconfig of a hub by which clusters register: its address, what
// verifies it in PEM, and the token of the bootstrap account.
func Kubeconfig(server string, caBundle []byte, token string) ([]byte, error) {
	// OCM's agents take a change of this name for another hub.
	const name = "default-cluster"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caBundle}
	config.AuthInfos["bootstrap"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["bootstrap"] = &clientcmdapi.Context{Cluster: name, AuthInfo: "bootstrap", Namespace: "default"}
	config.CurrentContext = "bootstrap"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", server, err)
	}
	return text, nil
}
