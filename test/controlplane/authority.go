package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// userValidity is longer than any test, benchmark or demo.
const userValidity = 7 * 24 * time.Hour

// authority signs the certificates of users. It replaces envtest's own, because the controller manager also needs its key
// to sign CertificateSigningRequests.
type authority struct {
	certificate       *x509.Certificate
	key               crypto.Signer
	certFile, keyFile string
}

var _ envtest.Authn = &authority{}

func newAuthority(dir string) (*authority, error) {
	a := &authority{certFile: filepath.Join(dir, "client-ca.crt"), keyFile: filepath.Join(dir, "client-ca.key")}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("generate the key of the client authority: %w", err)
	}
	if a.certificate, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "godwit-test-clients"}, a.key); err != nil {
		return nil, fmt.Errorf("certify the client authority: %w", err)
	}
	certPEM, keyPEM, err := encodePair(a.certificate, a.key)
	if err != nil {
		return nil, err
	}
	if err := cert.WriteCert(a.certFile, certPEM); err != nil {
		return nil, err
	}
	return a, keyutil.WriteKey(a.keyFile, keyPEM)
}

// AddUser issues a certificate as Kubernetes reads it: the name is the common name, the groups are the organizations.
func (a *authority) AddUser(user envtest.User, base *rest.Config) (*rest.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of user %s: %w", user.Name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("number the certificate of user %s: %w", user.Name, err)
	}
	now := time.Now()
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user.Name, Organization: user.Groups},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(userValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("certify user %s: %w", user.Name, err)
	}
	config := rest.CopyConfig(base)
	config.CertData, config.KeyData, err = encodePair(&x509.Certificate{Raw: raw}, key)
	return config, err
}

// Configure implements envtest.Authn. It does nothing: the flags of all API servers name the authority.
func (*authority) Configure(string, *envtest.Arguments) error { return nil }

// Start implements envtest.Authn. The authority's files exist already.
func (*authority) Start() error { return nil }

// Stop implements envtest.Authn. The authority's files are removed with the control plane's folder.
func (*authority) Stop() error { return nil }

func encodePair(certificate *x509.Certificate, key crypto.Signer) (certPEM, keyPEM []byte, err error) {
	if certPEM, err = cert.EncodeCertificates(certificate); err != nil {
		return nil, nil, fmt.Errorf("encode certificate: %w", err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, fmt.Errorf("encode private key: %w", err)
	}
	return certPEM, keyPEM, nil
}
