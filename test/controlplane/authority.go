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

// validity of certificates is longer than any test, benchmark or demo.
const validity = 7 * 24 * time.Hour

// authority signs the certificates of users, and those of servers that pods reach. It replaces envtest's own, because the
// controller manager also needs its key to sign CertificateSigningRequests.
type authority struct {
	certificate       *x509.Certificate
	certPEM           []byte
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
	var keyPEM []byte
	if a.certPEM, keyPEM, err = encodePair(a.certificate, a.key); err != nil {
		return nil, err
	}
	if err := cert.WriteCert(a.certFile, a.certPEM); err != nil {
		return nil, err
	}
	return a, keyutil.WriteKey(a.keyFile, keyPEM)
}

// AddUser issues a certificate as Kubernetes reads it: the name is the common name, the groups are the organizations.
func (a *authority) AddUser(user envtest.User, base *rest.Config) (*rest.Config, error) {
	config := rest.CopyConfig(base)
	var err error
	config.CertData, config.KeyData, err = a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user.Name, Organization: user.Groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return config, err
}

// issue certifies a new key, for as long as any test takes.
func (a *authority) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate the key of %s: %w", name, err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("number the certificate of %s: %w", name, err)
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Minute), now.Add(validity)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("certify %s: %w", name, err)
	}
	return encodePair(&x509.Certificate{Raw: raw}, key)
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
