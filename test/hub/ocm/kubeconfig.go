package ocm

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// hubName is the name of the cluster in every bootstrap kubeconfig. An agent requests a new certificate when it changes.
const hubName = "hub"

// tokenKubeconfig renders a kubeconfig with a token, for the API server of a configuration.
func tokenKubeconfig(server *rest.Config, token string) ([]byte, error) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[hubName] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData}
	kubeconfig.AuthInfos[hubName] = &clientcmdapi.AuthInfo{Token: token}
	kubeconfig.Contexts[hubName] = &clientcmdapi.Context{Cluster: hubName, AuthInfo: hubName}
	kubeconfig.CurrentContext = hubName
	return clientcmd.Write(*kubeconfig)
}

// unlimited returns a configuration whose client sends requests at once. By default it sends five per second.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// throughProxy sets the proxy of every cluster in a kubeconfig that has the server.
func throughProxy(kubeconfig []byte, server, proxy string) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read a bootstrap kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		if cluster.Server == server {
			cluster.ProxyURL = proxy
		}
	}
	return clientcmd.Write(*config)
}
