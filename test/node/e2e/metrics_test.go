package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// certify returns a certificate for a host, its key, and the CA that has signed it, as in a Secret of type kubernetes.io/tls.
func certify(t *testing.T, host string) map[string][]byte {
	t.Helper()
	certificates, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, ca := pem.Decode(certificates)
	return map[string][]byte{"tls.crt": pem.EncodeToMemory(first), "tls.key": key, "ca.crt": ca}
}

// issueCertificate issues what a Certificate asks for, as cert-manager does, of which only the kinds are installed: make e2e-operators
// runs it.
func (s *stage) issueCertificate(name string) {
	s.t.Helper()
	o := s.object("cert-manager.io/v1", "Certificate", name)
	hosts, _, _ := unstructured.NestedStringSlice(o, "spec", "dnsNames")
	secret, _, _ := unstructured.NestedString(o, "spec", "secretName")
	issuer, _, _ := unstructured.NestedStringMap(o, "spec", "issuerRef")
	if len(hosts) != 1 || issuer["name"] != "platform" || issuer["kind"] != "ClusterIssuer" || issuer["group"] != "cert-manager.io" {
		s.t.Fatalf("the Certificate is for %q by %v", hosts, issuer)
	}
	s.makeSecret(secret, certify(s.t, hosts[0]))
}

// makeSecret makes a Secret beside the release.
func (s *stage) makeSecret(name string, data map[string][]byte) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: data}
	if data[corev1.TLSCertKey] != nil {
		secret.Type = corev1.SecretTypeTLS
	}
	if err := s.Create(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
}

// makeScraper makes a Secret with the token of a ServiceAccount that may read metrics, for a PodMonitor.
func (s *stage) makeScraper(name, key string) {
	s.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "godwit-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.namespace, Name: name}},
	}
	if err := s.Create(s.t.Context(), binding); err != nil {
		s.t.Fatal(err)
	}
	s.makeSecret(name, map[string][]byte{key: []byte(s.tokenOf(name))})
}

// tokenOf makes a ServiceAccount beside the release, and returns a token.
func (s *stage) tokenOf(account string) string {
	s.t.Helper()
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: account}}
	if err := s.Create(s.t.Context(), of); err != nil {
		s.t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := s.SubResource("token").Create(s.t.Context(), of, request); err != nil {
		s.t.Fatal(err)
	}
	return request.Status.Token
}

// object reads an object of the release's namespace.
func (s *stage) object(apiVersion, kind, name string) map[string]any {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o); err != nil {
		s.t.Fatal(err)
	}
	return o.Object
}

const monitoringVersion = "monitoring.coreos.com/v1"

// endpoint returns the only endpoint of a monitor: endpoints of a ServiceMonitor, and podMetricsEndpoints of a PodMonitor.
func (s *stage) endpoint(kind, name, field string) map[string]any {
	s.t.Helper()
	all, _, err := unstructured.NestedSlice(s.object(monitoringVersion, kind, name), "spec", field)
	if err != nil || len(all) != 1 {
		s.t.Fatalf("%s of %s %s are %v: %v", field, kind, name, all, err)
	}
	endpoint, _ := all[0].(map[string]any)
	return endpoint
}

// verification returns by which CA and for which name Prometheus verifies certificates, as an endpoint of a monitor says.
func (s *stage) verification(endpoint map[string]any) (ca, serverName string) {
	s.t.Helper()
	serverName, _, _ = unstructured.NestedString(endpoint, "tlsConfig", "serverName")
	if from, found, _ := unstructured.NestedStringMap(endpoint, "tlsConfig", "ca", "configMap"); found {
		files := &corev1.ConfigMap{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: from["name"]}, files); err != nil {
			s.t.Fatal(err)
		}
		return files.Data[from["key"]], serverName
	}
	from, _, _ := unstructured.NestedStringMap(endpoint, "tlsConfig", "ca", "secret")
	return s.secretData(from), serverName
}

// secretData returns what a reference to a Secret names.
func (s *stage) secretData(from map[string]string) string {
	s.t.Helper()
	secret := &corev1.Secret{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: from["name"]}, secret); err != nil {
		s.t.Fatal(err)
	}
	if secret.Data[from["key"]] == nil {
		s.t.Fatalf("Secret %s has no %s", secret.Name, from["key"])
	}
	return string(secret.Data[from["key"]])
}

// scrape reads the metrics of a pod with a token, as an endpoint of a monitor says.
func (s *stage) scrape(pod corev1.Pod, endpoint map[string]any, token string) (string, error) {
	s.t.Helper()
	ca, serverName := s.verification(endpoint)
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM([]byte(ca)) {
		s.t.Fatalf("%q is not a certificate", ca)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted, ServerName: serverName}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "https://"+net.JoinHostPort(pod.Status.PodIP, "8443")+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("pod %s answers %s: %s", pod.Name, answer.Status, text)
	}
	return string(text), err
}

// expectMetrics fails unless each feature serves its metrics with the certificate that the Certificate asks for, to the token that its
// PodMonitor names.
func (s *stage) expectMetrics() {
	s.t.Helper()
	for _, feature := range []string{"storage-version-migrator", "revision-upgrader", "cluster-migration"} {
		endpoint := s.endpoint("PodMonitor", "godwit-"+feature, "podMetricsEndpoints")
		from, _, _ := unstructured.NestedStringMap(endpoint, "authorization", "credentials")
		said, err := s.scrape(s.podsOf(feature)[0], endpoint, s.secretData(from))
		if lease := `leader_election_master_status{name="godwit-` + feature + `"}`; err != nil || !strings.Contains(said, lease) {
			s.t.Errorf("metrics of %s have no %s: %v\n%s", feature, lease, err, said)
		}
		if _, err := s.scrape(s.podsOf(feature)[0], endpoint, "forged"); err == nil {
			s.t.Errorf("%s serves metrics to a forged token", feature)
		}
	}
}
