package controlplane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"path/filepath"
	"slices"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	serviceRange = "10.0.0.0/24"
	// serviceAddress is that of the Service kubernetes: the first of the range.
	serviceAddress = "10.0.0.1"
)

// ClientCAFile has the authority of users, by which kubelets know them.
func (cp *ControlPlane) ClientCAFile() string { return cp.authority.certFile }

// chooseAddress sets where API servers listen, and the flags that they need with pods.
func (cp *ControlPlane) chooseAddress(address string) error {
	cp.address = loopback
	if address == "" {
		return nil
	}
	cp.address = address
	// The certificate that envtest makes is not for the address of the Service.
	serving, err := cp.issueFiles("serving", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.ParseIP(address), net.ParseIP(serviceAddress)},
		DNSNames:    []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	})
	if err != nil {
		return err
	}
	kubelets, err := cp.issueFiles("kubelet-client", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	cp.forPods = map[string][]string{
		"tls-cert-file":                   {serving[0]},
		"tls-private-key-file":            {serving[1]},
		"kubelet-client-certificate":      {kubelets[0]},
		"kubelet-client-key":              {kubelets[1]},
		"kubelet-preferred-address-types": {"InternalIP"},
		"authorization-mode":              {"Node,RBAC"},
		"disable-admission-plugins":       {""},
		"enable-admission-plugins":        {"NodeRestriction"},
	}
	return nil
}

// issueFiles writes a new certificate and its key into files.
func (cp *ControlPlane) issueFiles(name string, template *x509.Certificate) (files [2]string, err error) {
	certPEM, keyPEM, err := cp.authority.issue(template)
	if err != nil {
		return files, err
	}
	files = [2]string{filepath.Join(cp.dir, name+".crt"), filepath.Join(cp.dir, name+".key")}
	if err := cert.WriteCert(files[0], certPEM); err != nil {
		return files, fmt.Errorf("write the certificate %s: %w", name, err)
	}
	if err := keyutil.WriteKey(files[1], keyPEM); err != nil {
		return files, fmt.Errorf("write the key %s: %w", name, err)
	}
	return files, nil
}

// serverCAs are the authorities of API servers: envtest's, and ours.
func (cp *ControlPlane) serverCAs() []byte {
	return slices.Concat(cp.server.SecureServing.CA, cp.authority.certPEM)
}
