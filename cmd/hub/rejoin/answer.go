package rejoin

import (
	"context"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// answerTimeout bounds the question whether a hub answers. An API server that can be reached answers within a second.
const answerTimeout = 5 * time.Second

// Answers reports whether the API server in a kubeconfig without credentials answers from here, over the proxy there and verified by the CA there.
// A proxy before API servers that are gone answers with another status.
func Answers(ctx context.Context, kubeconfig []byte) bool {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return false
	}
	clients, err := rest.HTTPClientFor(&rest.Config{
		Host: config.Host, Proxy: config.Proxy, Timeout: answerTimeout,
		TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, ServerName: config.ServerName, Insecure: config.Insecure},
	})
	if err != nil {
		return false
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", nil)
	if err != nil {
		return false
	}
	response, err := clients.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK, http.StatusUnauthorized, http.StatusForbidden: // without a permission, it answers as well
		return true
	}
	return false
}
