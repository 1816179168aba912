package hub_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// TestSharedBootstrap: of two migrations between the same hubs, the first that ends leaves
// the other its secret.
func TestSharedBootstrap(t *testing.T) {
	t.Parallel()
	first, second := newSite(t), newSite(t)
	second.to = first.to
	first.installed()
	second.installed()
	first.done(func() (cluster.Result, error) {
		return first.source(first.c).RevertBootstrap(t.Context(), []string{first.name})
	})
	if err := first.c.Get(t.Context(), client.ObjectKey{Namespace: bootstrapNamespace, Name: "bootstrap-" + first.to}, &corev1.Secret{}); err != nil {
		t.Fatalf("the secret that the second migration needs: %v", err)
	}
	second.done(func() (cluster.Result, error) {
		return second.source(second.c).RevertBootstrap(t.Context(), []string{second.name})
	})
	second.sharedIsGone()
}

// TestSharedBootstrapKeepsTheLatest: of two migrations, the one that started last has the
// kubeconfig that is valid for longer. The first one, which is repeated, does not replace it.
func TestSharedBootstrapKeepsTheLatest(t *testing.T) {
	t.Parallel()
	first, second := newSite(t), newSite(t)
	first.installed()
	second.to = first.to
	latest, err := cluster.Kubeconfig("https://"+first.to+".example.com", nil, "latest")
	if err != nil {
		t.Fatal(err)
	}
	install := func(s site, kubeconfig []byte) func() (cluster.Result, error) {
		return func() (cluster.Result, error) {
			return s.source(s.c).InstallBootstrap(t.Context(), []string{s.name}, kubeconfig)
		}
	}
	second.mustWait("has not written the kubeconfigs of both hubs", install(second, latest))
	first.done(install(first, first.targetKubeconfig()))
	second.setWork(true)
	second.done(install(second, latest))
	secret := &corev1.Secret{}
	if err := first.c.Get(t.Context(), client.ObjectKey{Namespace: bootstrapNamespace, Name: "bootstrap-" + first.to}, secret); err != nil || !bytes.Equal(secret.Data["kubeconfig"], latest) {
		t.Errorf("the bootstrap secret has %s, %v; want the latest kubeconfig", secret.Data["kubeconfig"], err)
	}
}

// TestSharedBootstrapKeepsTheLongest: of two migrations, the first has longer timeouts. Its token is valid for
// longer, and stays.
//
// Matrix: H25.
func TestSharedBootstrapKeepsTheLongest(t *testing.T) {
	t.Parallel()
	first, second := newSite(t), newSite(t)
	second.to = first.to
	kubeconfig := func(expires time.Time) []byte {
		claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires.Unix()))
		text, err := cluster.Kubeconfig("https://"+first.to+".example.com", nil, "e30."+claims+".signature")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	install := func(s site, kubeconfig []byte) func() (cluster.Result, error) {
		return func() (cluster.Result, error) {
			return s.source(s.c).InstallBootstrap(t.Context(), []string{s.name}, kubeconfig)
		}
	}
	long := kubeconfig(time.Now().Add(48 * time.Hour))
	first.mustWait("has not written the kubeconfigs of both hubs", install(first, long))
	second.mustWait("has not written the kubeconfigs of both hubs", install(second, kubeconfig(time.Now().Add(time.Hour))))
	secret := &corev1.Secret{}
	if err := first.c.Get(t.Context(), client.ObjectKey{Namespace: bootstrapNamespace, Name: "bootstrap-" + first.to}, secret); err != nil || !bytes.Equal(secret.Data["kubeconfig"], long) {
		t.Errorf("the bootstrap secret has %s, %v; want the kubeconfig that is valid for longer", secret.Data["kubeconfig"], err)
	}
}

// TestTargetsWithSimilarNames: one cluster moves to hub east and has KlusterletConfig prod-proxy of a user, and another moves to hub east-prod and has
// KlusterletConfig proxy. Each gets the kubeconfig of its own target, and keeps what its user has configured.
//
// Matrix: H98.
func TestTargetsWithSimilarNames(t *testing.T) {
	t.Parallel()
	first, second := newSite(t), newSite(t)
	first.to = "east-" + first.name
	second.to = first.to + "-prod"
	user := "prod-" + second.cluster().Annotations[cluster.AnnotationKlusterletConfig]
	config := cluster.KlusterletConfig(user)
	config.Object["spec"] = map[string]any{"hubKubeAPIServerConfig": map[string]any{"proxyURL": "https://proxy.example.com"}}
	first.create(config)
	t.Cleanup(func() { _ = first.c.Delete(context.WithoutCancel(t.Context()), config) })
	first.annotate(cluster.AnnotationKlusterletConfig, user)
	for _, s := range []site{first, second, first} { // the one, the other, and the pass after it
		s.mustWait("has not written the kubeconfigs of both hubs", s.install(s.c))
	}
	for _, s := range []site{first, second} {
		theirs := cluster.KlusterletConfig(user)
		if s.name == second.name {
			theirs.SetName(strings.TrimPrefix(user, "prod-"))
		}
		if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
			t.Fatal(err)
		}
		used := cluster.KlusterletConfig(s.cluster().Annotations[cluster.AnnotationKlusterletConfig])
		if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(used), used); err != nil {
			t.Fatal(err)
		}
		secrets, _, _ := unstructured.NestedSlice(used.Object, "spec", "multipleHubsConfig", "bootstrapKubeConfigs", "localSecretsConfig", "kubeConfigSecrets")
		if want := []any{map[string]any{"name": "bootstrap-" + s.to}}; !reflect.DeepEqual(secrets, want) {
			t.Errorf("the cluster that moves to %s gets the kubeconfigs of %v by KlusterletConfig %s", s.to, secrets, used.GetName())
		}
		want, _, _ := unstructured.NestedMap(theirs.Object, "spec", "hubKubeAPIServerConfig")
		if got, _, _ := unstructured.NestedMap(used.Object, "spec", "hubKubeAPIServerConfig"); !reflect.DeepEqual(got, want) {
			t.Errorf("KlusterletConfig %s has %v, want that of %s: %v", used.GetName(), got, theirs.GetName(), want)
		}
	}
}

// TestForeignSecret: an object of the name that the migration needs is not overwritten.
func TestForeignSecret(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret := &corev1.Secret{Data: map[string][]byte{"mine": []byte("x")}}
	secret.Namespace, secret.Name = bootstrapNamespace, "bootstrap-"+s.to
	s.create(secret)
	if _, err := s.install(s.c)(); !s.isFinal(err) || !strings.Contains(err.Error(), cluster.ReasonForeignObject.Name) {
		t.Errorf("install: %v, want %s", err, cluster.ReasonForeignObject)
	}
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil || len(secret.Data) != 1 {
		t.Errorf("the user's secret has %v, %v", secret.Data, err)
	}
}

// sharedIsGone fails the test if the bootstrap secret or a KlusterletConfig is left.
func (s site) sharedIsGone() {
	s.t.Helper()
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Namespace: bootstrapNamespace, Name: "bootstrap-" + s.to}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		s.t.Errorf("read the bootstrap secret: %v, want NotFound", err)
	}
	configs := &unstructured.UnstructuredList{}
	configs.SetGroupVersionKind(cluster.KlusterletConfigKind)
	if err := s.c.List(s.t.Context(), configs); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range configs.Items {
		if strings.HasPrefix(c.GetName(), "migration-"+s.to) {
			s.t.Errorf("KlusterletConfig %s is left", c.GetName())
		}
	}
}
