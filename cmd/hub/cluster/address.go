package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// dialTimeout bounds the check of an address.
const dialTimeout = 5 * time.Second

// CheckAddress connects to the address by which clusters reach a hub, with exactly the CA that their kubeconfig will have. It returns why the
// CA does not verify the API server, or why the address can't be reached from here; both are empty if it verifies. Without a CA, clusters get
// that of the token, which is not known here: then it checks nothing.
func CheckAddress(ctx context.Context, address clusterv1.ClientConfig) (untrusted, unreached string) {
	if len(address.CABundle) == 0 {
		return "", ""
	}
	u, err := url.Parse(address.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Sprintf("%q is not the URL of an API server, such as https://hub.example.com:6443", address.URL), ""
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(address.CABundle) {
		return "the CA bundle has no certificate in PEM", ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err == nil {
		_ = connection.Close()
		return "", ""
	}
	if invalid := (*tls.CertificateVerificationError)(nil); errors.As(err, &invalid) {
		return invalid.Err.Error(), ""
	}
	return "", err.Error()
}
