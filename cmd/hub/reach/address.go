package reach

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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dialTimeout bounds the check of an address.
const dialTimeout = 5 * time.Second

// Address is how clusters reach a hub. Without a CA they verify its API server by the root certificates of their system.
type Address struct {
	clusterv1.ClientConfig
	// Hub is the name of the hub.
	Hub string
	// Direct means that the address is that of a context and of flags, and not of a ManagedCluster on a global hub.
	Direct bool
	// Token is the Secret with the token of a ManagedServiceAccount that has the CA; empty if the CA is not of a token.
	Token string
}

// Of returns how clusters reach a hub, by its ManagedCluster on the global hub. The URL is empty if that does not say.
func Of(ctx context.Context, global client.Reader, hub string) (Address, error) {
	mc := &clusterv1.ManagedCluster{}
	if err := global.Get(ctx, client.ObjectKey{Name: hub}, mc); err != nil {
		return Address{}, fmt.Errorf("read ManagedCluster %s of the target hub: %w", hub, err)
	}
	a := Address{Hub: hub}
	if configs := mc.Spec.ManagedClusterClientConfigs; len(configs) > 0 {
		a.ClientConfig = configs[0]
	}
	return a, nil
}

// Unknown says what to do about a hub without an address.
func (a Address) Unknown() string {
	return fmt.Sprintf("ManagedCluster %s of the target hub has no spec.managedClusterClientConfigs: set it to the URL and the CA of its API server", a.Hub)
}

// Check connects to the address, and verifies the API server by what clusters verify it by. It returns why they would not verify it, or why that
// is not known here. Both are empty if they would.
func (a Address) Check(ctx context.Context) (untrusted, unproven string) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Sprintf("the address of hub %s, %q, is not the URL of an API server, such as https://hub.example.com:6443", a.Hub, a.URL), ""
	}
	roots, why := a.roots()
	switch {
	case why != "":
		return a.untrusted(why), ""
	case roots.Equal(x509.NewCertPool()):
		return "", fmt.Sprintf("clusters get no CA for hub %s, and the system here has no root certificates by which it could verify %s as they do: %s", a.Hub, a.URL, a.giveCA())
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
		return a.untrusted(invalid.Err.Error()), ""
	}
	return "", fmt.Sprintf("%s, by which clusters reach target hub %s, can't be reached from here: %v", a.URL, a.Hub, err)
}

// roots returns the certificates by which clusters verify the API server. Those of the system may be none, such as in a small image.
func (a Address) roots() (roots *x509.CertPool, why string) {
	if len(a.CABundle) == 0 {
		if roots, err := x509.SystemCertPool(); err == nil {
			return roots, ""
		}
		return x509.NewCertPool(), ""
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CABundle) {
		return nil, "it has no certificate in PEM"
	}
	return roots, ""
}

// untrusted says what clusters get, and why that does not verify the API server.
func (a Address) untrusted(why string) string {
	switch {
	case a.Token != "":
		return fmt.Sprintf("the CA in Secret %s, which clusters get with its token, does not verify %s: %s: %s", a.Token, a.URL, why, a.giveCA())
	case len(a.CABundle) == 0:
		return fmt.Sprintf("clusters get no CA for hub %s, and the root certificates of the system do not verify %s: %s: %s", a.Hub, a.URL, why, a.giveCA())
	case a.Direct:
		return fmt.Sprintf("the CA that clusters get for hub %s does not verify %s: %s", a.Hub, a.URL, why)
	}
	return fmt.Sprintf("the CA in spec.managedClusterClientConfigs of ManagedCluster %s does not verify %s: %s", a.Hub, a.URL, why)
}

// giveCA says how a user gives a CA. A kubeconfig may skip the verification, and clusters never do.
func (a Address) giveCA() string {
	if a.Direct {
		return "give the CA with --to-ca-file=FILE, also if the context has insecure-skip-tls-verify"
	}
	return fmt.Sprintf("set caBundle in spec.managedClusterClientConfigs of ManagedCluster %s", a.Hub)
}

// TokenNotIssued says that the CA is that of a token which is issued during a migration.
func (a Address) TokenNotIssued() string {
	return fmt.Sprintf("clusters get the CA of hub %s with the token of a ManagedServiceAccount, which the migration issues and checks in Initializing: to have it checked now, %s", a.Hub, a.giveCA())
}
