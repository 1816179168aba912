package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// startTimeout bounds the start of one server, which takes 2 to 5 s on an idle machine of two cores, and up to
	// twenty times that on a busy one.
	startTimeout = 2 * time.Minute
	// stopTimeout is how long a server may take to end before it is killed.
	stopTimeout = 20 * time.Second
	// etcdQuota, in bytes, is the most that etcd's documentation recommends. Its default of 2 GB ends a benchmark of a
	// million objects in NOSPACE.
	etcdQuota = 8 << 30
	// loopback is the address of every server, so that none is reachable from outside.
	loopback = "127.0.0.1"
)

// Options of a control plane. The zero value works.
type Options struct {
	// Dir receives data, credentials and logs, and is kept. It must be empty or not exist.
	// Empty: a temporary folder, which Stop removes.
	Dir string
	// APIServerArgs are further flags of each API server, as --name=value. They replace a default of that name.
	APIServerArgs []string
	// Output receives a copy of the servers' output. In any case each server has a log file in Dir, and the error of a
	// failed start has its last lines.
	Output io.Writer
}

// EnforceOwnerReferences is a flag for APIServerArgs: only a user who may set the finalizers of an owner may block its
// deletion, as on OpenShift.
const EnforceOwnerReferences = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"

// ControlPlane is a running etcd with its first API server, and with the servers that were started afterwards.
// Its methods may be called concurrently.
type ControlPlane struct {
	binaries  string
	dir       string
	temporary bool
	flags     *envtest.Arguments
	logs      *logs
	etcd      *envtest.Etcd
	client    *clientv3.Client
	authority *authority

	adminToken string
	admin      *rest.Config

	mu       sync.Mutex
	server   *envtest.APIServer
	serving  bool
	started  []*process
	finished chan struct{} // closed when the last server has ended
	stop     func() error
}

// Start starts etcd and an API server and returns when that serves, after 3 to 6 s. A start that is canceled or fails
// leaves nothing behind. A cancellation takes effect between two servers, and has no effect once Start has returned.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{binaries: binaries, finished: make(chan struct{})}
	cp.stop = sync.OnceValue(cp.end)
	if err := cp.start(ctx, o); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

// Stop ends every server that was started here, and removes a temporary folder. It may be called again.
func (cp *ControlPlane) Stop() error { return cp.stop() }

// Dir is the folder with data, credentials and logs.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Config returns the cluster administrator's configuration for the first API server, without a client-side rate limit.
// The caller owns the copy.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.admin) }

// Etcd returns a client of etcd, to read what the API servers have stored. Stop closes it.
func (cp *ControlPlane) Etcd() *clientv3.Client { return cp.client }

// StopEtcd ends etcd; the API servers run. StartEtcd starts it again, on the same port and data.
func (cp *ControlPlane) StopEtcd() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.etcd.Stop(); err != nil {
		return fmt.Errorf("stop etcd: %w", err)
	}
	return nil
}

// StartEtcd starts etcd after StopEtcd and returns when the first API server is ready again.
func (cp *ControlPlane) StartEtcd(ctx context.Context) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.checkStartable(ctx); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	if err := onLastingThread(cp.finished, cp.etcd.Start); err != nil {
		return fmt.Errorf("start etcd: %w%s", err, cp.logs.tail("etcd"))
	}
	return poll(ctx, "kube-apiserver to be ready", func(ctx context.Context) error { return serverReady(ctx, cp.admin) })
}

// EtcdEndpoint is etcd's client URL.
func (cp *ControlPlane) EtcdEndpoint() string { return cp.etcd.URL.String() }

func (cp *ControlPlane) start(ctx context.Context, o Options) error {
	if err := cp.makeDir(o.Dir); err != nil {
		return err
	}
	cp.logs = &logs{dir: cp.dir, copy: o.Output}
	var err error
	if cp.flags, err = parseFlags(o.APIServerArgs); err != nil {
		return err
	}
	if cp.authority, err = newAuthority(cp.dir); err != nil {
		return err
	}
	if err := cp.makeAdmin(); err != nil {
		return err
	}
	if err := cp.startEtcd(ctx); err != nil {
		return err
	}
	if err := cp.configureAPIServer(); err != nil {
		return err
	}
	if err := cp.StartAPIServer(ctx); err != nil {
		return err
	}
	return cp.awaitDefaultNamespace(ctx)
}

// makeDir refuses a used folder: envtest keeps no copy of the authority behind the serving certificate it finds there.
func (cp *ControlPlane) makeDir(dir string) error {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "godwit-controlplane-")
		if err != nil {
			return fmt.Errorf("make the control plane's folder: %w", err)
		}
		cp.dir, cp.temporary = temporary, true
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the control plane's folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the control plane's folder: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("start a control plane in %s: the folder is not empty: name an empty or a new one", dir)
	}
	cp.dir, err = filepath.Abs(dir)
	return err
}

func (cp *ControlPlane) startEtcd(ctx context.Context) error {
	if err := cp.checkStartable(ctx); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	program, err := dyingWithParent(cp.dir, filepath.Join(cp.binaries, "etcd"))
	if err != nil {
		return err
	}
	out, err := cp.logs.open("etcd")
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	etcd := &envtest.Etcd{
		URL:          &url.URL{Scheme: "http", Host: net.JoinHostPort(loopback, strconv.Itoa(port))},
		Path:         program,
		DataDir:      filepath.Join(cp.dir, "etcd"),
		Out:          out,
		Err:          out,
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
	}
	etcd.Configure().Set("quota-backend-bytes", strconv.Itoa(etcdQuota))
	// The only member has no other to wait for, and elects itself at once: with etcd's defaults of 100 and 1000 ms after a
	// second. A heartbeat every 10 ms would cost an idle etcd 1% of a core.
	etcd.Configure().Set("heartbeat-interval", "50").Set("election-timeout", "250")
	cp.etcd = etcd
	if err := onLastingThread(cp.finished, etcd.Start); err != nil {
		return fmt.Errorf("start etcd: %w%s", err, cp.logs.tail("etcd"))
	}
	// The client would log every connection that a test cuts on purpose.
	cp.client, err = clientv3.New(clientv3.Config{
		Endpoints:   []string{cp.EtcdEndpoint()},
		DialTimeout: startTimeout,
		Logger:      zap.NewNop(),
	})
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	return nil
}

// awaitDefaultNamespace waits for the namespace in which most tests create their first object. The API server is ready
// before it has created its namespaces.
func (cp *ControlPlane) awaitDefaultNamespace(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(cp.admin)
	if err != nil {
		return fmt.Errorf("connect to kube-apiserver: %w", err)
	}
	return poll(ctx, "the default namespace", func(ctx context.Context) error {
		_, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// checkStartable is called before each start, because a server that starts after Stop would be left running.
func (cp *ControlPlane) checkStartable(ctx context.Context) error {
	select {
	case <-cp.finished:
		return errors.New("the control plane is stopped")
	default:
		return context.Cause(ctx)
	}
}

// end stops all servers, the last started first, so that no server loses another on which it depends.
func (cp *ControlPlane) end() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	var errs []error
	for i := len(cp.started) - 1; i >= 0; i-- {
		errs = append(errs, cp.started[i].stop())
	}
	errs = append(errs, cp.stopAPIServer())
	if cp.client != nil {
		errs = append(errs, cp.client.Close())
	}
	if cp.etcd != nil {
		errs = append(errs, cp.etcd.Stop())
	}
	close(cp.finished)
	if cp.logs != nil {
		errs = append(errs, cp.logs.close())
	}
	if cp.temporary {
		errs = append(errs, os.RemoveAll(cp.dir))
	}
	return errors.Join(errs...)
}
