package guide_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/program"
)

// cluster is the one of the guides: it has one API server, and its etcd
// wants certificates.
type cluster struct {
	t     *testing.T
	plane *controlplane.ControlPlane
	dir   string   // where the reader is
	env   []string // of the reader's shell
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	plane := controlplane.Options{}.StartFor(t)
	c := &cluster{t: t, plane: plane, dir: t.TempDir()}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, plane.Config()); err != nil {
		t.Fatal(err)
	}
	pki := t.TempDir()
	c.env = []string{
		"PATH=" + c.programs() + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + t.TempDir(), // for kubectl's caches
		"KUBECONFIG=" + kubeconfig,
		"PKI=" + pki,
		"ETCD=" + c.secureEtcd(pki),
		"PORT=" + c.freePort(),
	}
	for _, folder := range []string{"api", "charts"} { // the reader is in a clone of the repository
		there, err := filepath.Abs(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		c.link(there, filepath.Join(c.dir, folder))
	}
	return c
}

// freePort is one that no process listens on.
func (c *cluster) freePort() string {
	c.t.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		c.t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// programs is a folder with godwit, as it is now, kubectl and Helm. All readers have the same.
func (c *cluster) programs() string {
	c.t.Helper()
	folder, err := programs()
	if err != nil {
		c.t.Fatal(err)
	}
	return folder
}

// programFolder is that of programs, once a test has needed it.
var programFolder string

var programs = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "godwit-guide-")
	if err != nil {
		return "", err
	}
	programFolder = folder
	if _, err := program.Godwit(context.Background(), folder); err != nil {
		return "", err
	}
	helm, err := program.Helm(context.Background())
	if err != nil {
		return "", err
	}
	assets := cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join(root, "bin", "controlplane"))
	kubectl, err := filepath.Abs(filepath.Join(assets, "kubectl"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(kubectl); err != nil {
		return "", fmt.Errorf("find kubectl beside kube-apiserver: %w: run `make controlplane`, or put it there", err)
	}
	for name, target := range map[string]string{"kubectl-godwit": "godwit", "kubectl": kubectl, "helm": helm} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	return folder, nil
})

func (c *cluster) link(target, name string) {
	c.t.Helper()
	if err := os.Symlink(target, name); err != nil {
		c.t.Fatal(err)
	}
}

// secureEtcd puts TLS in front of etcd, as every real one has it. It returns
// the URL, and writes to pki what a client needs.
func (c *cluster) secureEtcd(pki string) string {
	c.t.Helper()
	address := net.ParseIP("127.0.0.1")
	chain, key, err := cert.GenerateSelfSignedCertKey("etcd", []net.IP{address}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	serving, err := tls.X509KeyPair(chain, key)
	if err != nil {
		c.t.Fatal(err)
	}
	client, err := c.plane.AddUser("guide")
	if err != nil {
		c.t.Fatal(err)
	}
	clientCA, err := os.ReadFile(filepath.Join(c.plane.Dir(), "client-ca.crt"))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, content := range map[string][]byte{"ca.crt": chain, "client.crt": client.CertData, "client.key": client.KeyData} {
		if err := os.WriteFile(filepath.Join(pki, name), content, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{serving},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    x509.NewCertPool(),
		NextProtos:   []string{"h2"}, // gRPC insists
		MinVersion:   tls.VersionTLS12,
	}
	config.ClientCAs.AppendCertsFromPEM(clientCA)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = listener.Close() })
	go c.forward(listener)
	return "https://" + listener.Addr().String()
}

// forward ends when the listener is closed.
func (c *cluster) forward(listener net.Listener) {
	etcd, err := url.Parse(c.plane.EtcdEndpoint())
	if err != nil {
		c.t.Error(err)
		return
	}
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", etcd.Host)
		if err != nil {
			_ = from.Close()
			continue
		}
		pass := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			_, _ = to.Close(), from.Close()
		}
		go pass(to, from)
		go pass(from, to)
	}
}

// lostServer is an API server that a cluster lost this morning, if the guide names it.
const lostServer = "apiserver-lost"

// loseServer leaves what an API server leaves that was taken away without a
// word: a lease that is still valid.
func (c *cluster) loseServer() {
	c.t.Helper()
	clients, err := kubernetes.NewForConfig(c.plane.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	hour := int32(3600)
	renewed := metav1.NewMicroTime(time.Now().Add(-25 * time.Minute))
	_, err = clients.CoordinationV1().Leases(metav1.NamespaceSystem).Create(c.t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: lostServer,
			Labels: map[string]string{
				"apiserver.kubernetes.io/identity": "kube-apiserver",
				"kubernetes.io/hostname":           "control-plane-3",
			},
		},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &hour, RenewTime: &renewed},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}
