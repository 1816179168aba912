package klusterlet

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Tokens counts the bootstrap tokens that an import controller has issued.
type Tokens struct{ issued atomic.Int32 }

// Issued returns how many tokens the controller has issued.
func (t *Tokens) Issued() int { return int(t.issued.Load()) }

// keys of the simulated import Secret: the bootstrap secret of the hub in the klusterlet, and its token with the expiry.
const (
	secretKey     = "secret"
	tokenKey      = corev1.ServiceAccountTokenKey
	expirationKey = "expiration"
)

// token returns the token for a bootstrap secret of a cluster, and writes it into the import Secret. As the original controller, it keeps the token
// of the import Secret only if that was for the name of a single hub's secret and has not expired. Otherwise it takes a token of the cluster's
// account from a Secret, whose expiry it does not know, or issues another one.
func (i Importer) token(ctx context.Context, name, bootstrapSecret string) (string, error) {
	imported := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-import"}}
	err := i.Get(ctx, client.ObjectKeyFromObject(imported), imported)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	found, err := i.tokenOfAccount(ctx, name)
	if err != nil {
		return "", err
	}
	data := map[string][]byte{secretKey: []byte(bootstrapSecret)}
	_, expires := imported.Data[expirationKey]
	switch present := string(imported.Data[tokenKey]); {
	case string(imported.Data[secretKey]) == onlyHub && (expires || present == found):
		data[tokenKey] = imported.Data[tokenKey]
		if expires {
			data[expirationKey] = imported.Data[expirationKey]
		}
	case found != "":
		data[tokenKey] = []byte(found)
	default:
		data[tokenKey] = fmt.Appendf(nil, "token %d of %s", i.Tokens.issued.Add(1), i.Server)
		data[expirationKey] = []byte("2100-01-01T00:00:00Z")
	}
	token := string(data[tokenKey])
	if exists && maps.EqualFunc(imported.Data, data, bytes.Equal) {
		return token, nil
	}
	imported.Data = data
	if exists {
		return token, i.Update(ctx, imported)
	}
	return token, i.Create(ctx, imported)
}

// tokenOfAccount returns the token in a Secret of the cluster's bootstrap account, or empty.
func (i Importer) tokenOfAccount(ctx context.Context, name string) (string, error) {
	secrets := &corev1.SecretList{}
	if err := i.List(ctx, secrets, client.InNamespace(name)); err != nil {
		return "", err
	}
	for _, s := range secrets.Items {
		if s.Type == corev1.SecretTypeServiceAccountToken && strings.HasPrefix(s.Name, name+"-bootstrap-sa-token-") && len(s.Data[tokenKey]) > 0 {
			return string(s.Data[tokenKey]), nil
		}
	}
	return "", nil
}

// ownKubeconfig returns the kubeconfig of the hub for a bootstrap secret of a cluster.
func (i Importer) ownKubeconfig(ctx context.Context, name, bootstrapSecret string) ([]byte, error) {
	if i.Tokens == nil {
		return i.kubeconfig()
	}
	token, err := i.token(ctx, name, bootstrapSecret)
	if err != nil {
		return nil, err
	}
	return cluster.Kubeconfig(i.Server, nil, token)
}
