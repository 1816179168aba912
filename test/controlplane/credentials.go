package controlplane

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// AddUser returns a configuration for the first API server that authenticates as the user by a client certificate. The
// user has the permissions that RBAC grants to its name and groups, at first none. Set Host to use a second server.
func (cp *ControlPlane) AddUser(name string, groups ...string) (*rest.Config, error) {
	return cp.authority.AddUser(envtest.User{Name: name, Groups: groups}, cp.anonymous())
}

// anonymous is a configuration for the first API server without credentials.
func (cp *ControlPlane) anonymous() *rest.Config {
	return &rest.Config{
		Host:            cp.server.SecureServing.URL("https", "").String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.serverCAs()},
		// No client-side limit: the servers limit clients by priority and fairness, as with controller-runtime.
		QPS: -1,
	}
}

// makeAdmin issues the cluster administrator's token. With a certificate instead, API servers would verify a signature for
// every request, which took an eighth of their CPU time in our tests.
func (cp *ControlPlane) makeAdmin() error {
	cp.adminToken = rand.Text()
	line := cp.adminToken + `,godwit-admin,godwit-admin,"system:masters"` + "\n"
	if err := os.WriteFile(cp.tokenFile(), []byte(line), 0o600); err != nil {
		return fmt.Errorf("write the administrator's token: %w", err)
	}
	return nil
}

func (cp *ControlPlane) tokenFile() string { return filepath.Join(cp.dir, "tokens.csv") }

// Kubeconfig renders a self-contained kubeconfig for the configuration of any user, certificate or token.
func Kubeconfig(config *rest.Config) ([]byte, error) {
	const name = "godwit-test"
	return clientcmd.Write(contexts(name, map[string]*rest.Config{name: config}))
}

// WriteKubeconfig writes the file that Kubeconfig renders, readable by the owner only, and makes its folder if needed.
func WriteKubeconfig(path string, config *rest.Config) error {
	content, err := Kubeconfig(config)
	if err != nil {
		return fmt.Errorf("render kubeconfig for %s: %w", config.Host, err)
	}
	return writeKubeconfig(path, content)
}

// WriteContexts is like WriteKubeconfig for several clusters. Each cluster has a context of the same name.
func WriteContexts(path, current string, clusters map[string]*rest.Config) error {
	content, err := clientcmd.Write(contexts(current, clusters))
	if err != nil {
		return fmt.Errorf("render kubeconfig with the contexts of %d clusters: %w", len(clusters), err)
	}
	return writeKubeconfig(path, content)
}

func contexts(current string, clusters map[string]*rest.Config) clientcmdapi.Config {
	kubeconfig := clientcmdapi.NewConfig()
	for name, config := range clusters {
		kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
			ClientCertificateData: config.CertData,
			ClientKeyData:         config.KeyData,
			Token:                 config.BearerToken,
		}
		kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	kubeconfig.CurrentContext = current
	return *kubeconfig
}

func writeKubeconfig(path string, content []byte) error {
	if err := keyutil.WriteKey(path, content); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
