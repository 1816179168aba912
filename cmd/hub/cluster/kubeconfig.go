package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns the kubeconfig with which clusters register at a hub: its address, its CA certificates in PEM, and
// the token of the bootstrap account.
func Kubeconfig(server string, caBundle []byte, token string) ([]byte, error) {
	// OCM's agents treat another name as another hub.
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

// ExpiresLater reports whether the token of the installed kubeconfig expires later than that of another kubeconfig of
// the same hub. It does not verify the tokens: both are from the hub. A token without an expiry is never later.
func ExpiresLater(installed, other []byte) bool {
	a, errA := clientcmd.RESTConfigFromKubeConfig(installed)
	b, errB := clientcmd.RESTConfigFromKubeConfig(other)
	if errA != nil || errB != nil || a.Host != b.Host || !bytes.Equal(a.CAData, b.CAData) {
		return false
	}
	return expiry(a.BearerToken) > expiry(b.BearerToken)
}

// Expires returns when the token of a kubeconfig expires, or false if it does not say. It does not verify the token.
func Expires(kubeconfig []byte) (time.Time, bool) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return time.Time{}, false
	}
	seconds := expiry(config.BearerToken)
	return time.Unix(seconds, 0), seconds > 0
}

// expiry returns when a ServiceAccount token expires, in seconds since 1970, or zero if the token does not say.
func expiry(token string) int64 {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return 0
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return 0
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return 0
	}
	return claims.Expires
}

// CheckKubeconfig refuses a kubeconfig of another hub that would make a klusterlet run a program or read a file of the
// cluster.
func CheckKubeconfig(text []byte) error {
	refuse := func(why string) error {
		return Fail(ReasonRefusedObject, "the bootstrap kubeconfig of the other hub is refused: %s", why)
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return refuse("it can't be read")
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		return refuse("it has no current context with a cluster and a user")
	}
	for _, c := range config.Clusters {
		if c.CertificateAuthority != "" {
			return refuse("it names a file of a certificate authority")
		}
	}
	for _, a := range config.AuthInfos {
		if a.Exec != nil || a.AuthProvider != nil {
			return refuse("it names a program that gets credentials")
		}
		if a.TokenFile != "" || a.ClientCertificate != "" || a.ClientKey != "" {
			return refuse("it names a file with credentials")
		}
	}
	return nil
}
