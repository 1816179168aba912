package controlplane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

// TestControllerManager: each subtest needs the work of a controller.
func TestControllerManager(t *testing.T) {
	began := time.Now()
	stop, err := shared.StartControllerManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	clients := clientsFor(t, shared.Config())
	namespace := createNamespace(t, shared.Config())

	t.Run("service account", func(t *testing.T) {
		eventually(t, "the default service account", func() bool {
			_, err := clients.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
			return err == nil
		})
	})
	t.Run("namespace deletion", func(t *testing.T) {
		if err := clients.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the end of the namespace", func() bool {
			_, err := clients.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})
	t.Run("certificate signing", func(t *testing.T) { testCertificateSigning(t, clients) })

	for range 2 {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

// testCertificateSigning acts as an agent that joins a hub: the API server must accept its new certificate.
func testCertificateSigning(t *testing.T, clients *kubernetes.Clientset) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "agent"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := clients.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	if _, err := requests.UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	name := request.Name
	eventually(t, "a signature", func() bool {
		request, err = requests.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && len(request.Status.Certificate) > 0
	})

	agent := rest.AnonymousClientConfig(shared.Config())
	agent.CertData = request.Status.Certificate
	if agent.KeyData, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	review, err := clientsFor(t, agent).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), selfReview(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.UserInfo.Username != "agent" {
		t.Errorf("user of the certificate = %q, want agent", review.Status.UserInfo.Username)
	}
}

func selfReview() *authenticationv1.SelfSubjectReview { return &authenticationv1.SelfSubjectReview{} }

// tokenUser creates a service account in the default namespace and returns its name, and a configuration with its token.
func tokenUser(t *testing.T, config *rest.Config) (string, *rest.Config) {
	t.Helper()
	accounts := clientsFor(t, config).CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	account, err := accounts.Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := accounts.CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bearer := rest.AnonymousClientConfig(config)
	bearer.BearerToken = request.Status.Token
	return account.Name, bearer
}
