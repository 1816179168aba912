package controlplane

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/godwit-dev/godwit/test/process"
)

const (
	firstServer = "kube-apiserver"
	// identityLabel marks the identity leases of API servers
	// (IdentityLeaseComponentLabelKey in k8s.io/kubernetes/pkg/controlplane/apiserver).
	identityLabel = "apiserver.kubernetes.io/identity=kube-apiserver"
)

// APIServer is a further API server on the etcd of a ControlPlane.
type APIServer struct {
	config   *rest.Config
	identity string
	process  *process.Process
}

// Config returns the cluster administrator's configuration for this server. The caller owns the copy.
func (s *APIServer) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Identity is the name of the server's lease in kube-system.
func (s *APIServer) Identity() string { return s.identity }

// Pause freezes the server like a machine that hangs, and returns when none of its threads runs: connections stay open,
// requests queue up, and the lease becomes stale.
func (s *APIServer) Pause(ctx context.Context) error { return s.process.Pause(ctx) }

// Continue resumes a paused server, which first handles the queued requests.
func (s *APIServer) Continue() error { return s.process.Continue() }

// Stop ends the server; it may be called again. A paused server is killed, so that its queued requests are never served.
// Its lease stays for an hour, as after a crash.
func (s *APIServer) Stop() error { return s.process.Stop() }

// StopAPIServer ends the first API server; everything else runs. StartAPIServer starts it again.
func (cp *ControlPlane) StopAPIServer() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return cp.stopAPIServer()
}

func (cp *ControlPlane) stopAPIServer() error {
	if !cp.serving {
		return nil
	}
	if err := cp.server.Stop(); err != nil {
		return fmt.Errorf("stop kube-apiserver: %w", err)
	}
	cp.serving = false
	return nil
}

// StartAPIServer starts the first API server after StopAPIServer, on the same port and etcd, and returns when it
// serves. It does nothing if the server was not stopped.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.serving {
		return nil
	}
	if err := cp.checkStartable(ctx); err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	cp.serving = true // also if it fails: then Stop must clean up
	if err := process.OnLastingThread(cp.finished, cp.server.Start); err != nil {
		return fmt.Errorf("start kube-apiserver: %w%s", err, cp.logs.tail(firstServer))
	}
	if cp.admin == nil {
		cp.admin = cp.anonymous()
		cp.admin.BearerToken = cp.adminToken
	}
	return process.Poll(ctx, "kube-apiserver to be ready", func(ctx context.Context) error { return serverReady(ctx, cp.admin) })
}

// RestartAPIServer stops and starts the first API server. Watches end and requests fail in between.
func (cp *ControlPlane) RestartAPIServer(ctx context.Context) error {
	if err := cp.StopAPIServer(); err != nil {
		return err
	}
	return cp.StartAPIServer(ctx)
}

// ReplaceTokenKey restarts the first API server with another key for the tokens of ServiceAccounts. All that it has issued before are
// invalid from then on, as those are that have expired.
func (cp *ControlPlane) ReplaceTokenKey(ctx context.Context) error {
	if err := cp.StopAPIServer(); err != nil {
		return err
	}
	certPEM, keyPEM, err := cp.authority.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "godwit-test-tokens"}})
	if err != nil {
		return err
	}
	certFile, keyFile := cp.tokenKeyFiles()
	if err := errors.Join(cert.WriteCert(certFile, certPEM), keyutil.WriteKey(keyFile, keyPEM)); err != nil {
		return fmt.Errorf("replace the key of tokens: %w", err)
	}
	return cp.StartAPIServer(ctx)
}

// tokenKeyFiles are the key for the tokens of ServiceAccounts, and the certificate that verifies them. envtest makes both.
func (cp *ControlPlane) tokenKeyFiles() (certFile, keyFile string) {
	dir := filepath.Join(cp.dir, firstServer)
	return filepath.Join(dir, "sa-signer.crt"), filepath.Join(dir, "sa-signer.key")
}

// Identity is the name of the first API server's lease in kube-system, which appears some moments after the start.
func (cp *ControlPlane) Identity(ctx context.Context) (string, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("identify kube-apiserver: %w", err)
	}
	return awaitIdentity(ctx, cp.admin, hostname, time.Time{})
}

// StartSecond starts another API server on the same etcd. It trusts the same users and tokens. It has its own lease, because
// it runs under another host name, and the name of a lease is a hash of the host name. StartSecond may be called again with
// another host name. It needs Linux, and the permission to make a UTS namespace: root, or unprivileged user namespaces.
func (cp *ControlPlane) StartSecond(ctx context.Context, hostname string) (*APIServer, error) {
	return cp.StartSecondOn(ctx, hostname, cp.EtcdEndpoint())
}

// StartSecondOn is like StartSecond, with another way to the same etcd.
func (cp *ControlPlane) StartSecondOn(ctx context.Context, hostname, etcd string) (*APIServer, error) {
	own, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("start a second kube-apiserver: %w", err)
	}
	if hostname == "" || hostname == own {
		return nil, fmt.Errorf("start a second kube-apiserver: host name %q gives it no identity of its own", hostname)
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	command := exec.Command(filepath.Join(cp.binaries, firstServer), cp.secondServerArgs(port, etcd)...)
	if err := onHost(hostname, command); err != nil {
		return nil, fmt.Errorf("start a second kube-apiserver: %w", err)
	}
	config := cp.Config()
	config.Host = "https://" + net.JoinHostPort(cp.address, strconv.Itoa(port))
	began := time.Now()
	server, err := cp.run(ctx, firstServer+"-"+hostname, command, func(ctx context.Context) error { return serverReady(ctx, config) })
	if err != nil {
		return nil, err
	}
	identity, err := awaitIdentity(ctx, config, hostname, began)
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &APIServer{config: config, identity: identity, process: server}, nil
}

// configureAPIServer prepares the first server. Its port stays the same across restarts.
func (cp *ControlPlane) configureAPIServer() error {
	program, err := dyingWithParent(cp.dir, filepath.Join(cp.binaries, firstServer))
	if err != nil {
		return err
	}
	out, err := cp.logs.open(firstServer)
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	certDir := filepath.Join(cp.dir, firstServer)
	if err := os.Mkdir(certDir, 0o700); err != nil {
		return fmt.Errorf("make the folder of certificates: %w", err)
	}
	cp.server = &envtest.APIServer{
		SecureServing: envtest.SecureServing{
			ListenAddr: envtest.ListenAddr{Address: cp.address, Port: strconv.Itoa(port)},
			Authn:      cp.authority,
		},
		Path:         program,
		CertDir:      certDir,
		EtcdURL:      cp.etcd.URL,
		StartTimeout: process.StartTimeout,
		StopTimeout:  process.StopTimeout,
		Out:          out,
		Err:          out,
	}
	for _, flag := range cp.flags.AsStrings(cp.commonFlags()) {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		cp.server.Configure().AppendNoDefaults(name, value)
	}
	return nil
}

// commonFlags are the flags that all API servers share, so that each accepts the same users and tokens.
func (cp *ControlPlane) commonFlags() map[string][]string {
	tokenCert, tokenKey := cp.tokenKeyFiles()
	flags := map[string][]string{
		"client-ca-file":  {cp.authority.certFile},
		"token-auth-file": {cp.tokenFile()},
		// All servers must have the same issuer. By default, envtest names the address of the first server.
		"service-account-issuer":           {"https://kubernetes.default.svc"},
		"service-account-key-file":         {tokenCert},
		"service-account-signing-key-file": {tokenKey},
		"service-cluster-ip-range":         {serviceRange},
		"authorization-mode":               {"RBAC"},
		"allow-privileged":                 {"true"},
		// envtest disables this admission plugin, too: it requires a default service account, which only the controller manager makes.
		"disable-admission-plugins": {"ServiceAccount"},
		// By default watches keep a stopping server alive for a minute. This ends them, as tests of a restart under a
		// running controller need.
		"shutdown-watch-termination-grace-period": {"2s"},
	}
	maps.Copy(flags, cp.forPods)
	return flags
}

func (cp *ControlPlane) secondServerArgs(port int, etcd string) []string {
	flags := cp.commonFlags()
	flags["etcd-servers"] = []string{etcd}
	flags["bind-address"] = []string{cp.address}
	flags["secure-port"] = []string{strconv.Itoa(port)}
	flags["cert-dir"] = []string{filepath.Join(cp.dir, firstServer)} // the certificate is for the address, on any port
	return cp.flags.AsStrings(flags)
}

func parseFlags(args []string) (*envtest.Arguments, error) {
	flags := envtest.EmptyArguments()
	for _, arg := range args {
		name, value, found := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.HasPrefix(arg, "--") || !found {
			return nil, fmt.Errorf("read API server flag %q: write it as --name=value", arg)
		}
		flags.AppendNoDefaults(name, value)
	}
	return flags, nil
}

func serverReady(ctx context.Context, config *rest.Config) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// awaitIdentity returns the lease of the API server on the host once it was renewed at or after since. It finds the lease
// by the label with the host name, because the hash in its name is internal to the server.
func awaitIdentity(ctx context.Context, config *rest.Config, hostname string, since time.Time) (string, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("connect to kube-apiserver: %w", err)
	}
	var identity string
	err = process.Poll(ctx, "the identity lease of host "+hostname, func(ctx context.Context) error {
		leases, err := clients.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
			LabelSelector: identityLabel + "," + corev1.LabelHostname + "=" + hostname,
		})
		if err != nil {
			return err
		}
		for _, lease := range leases.Items {
			if renewed := lease.Spec.RenewTime; renewed != nil && !renewed.Time.Before(since) {
				identity = lease.Name
				return nil
			}
		}
		return fmt.Errorf("%d leases, none of them renewed by it", len(leases.Items))
	})
	return identity, err
}
