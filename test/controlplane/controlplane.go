package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/godwit-dev/godwit/test/process"
)

// Options of a control plane. The zero value works.
type Options struct {
	// Dir receives data, credentials and logs, and is kept. It must be empty or not exist.
	// Empty: a temporary folder, which Stop removes.
	Dir string
	// APIServerArgs are further flags of each API server, as --name=value. They replace a default of that name.
	APIServerArgs []string
	// Address is an address of this machine where the API server listens, so that pods reach it, also by the Service kubernetes. The
	// API server then also reaches kubelets, and requires the service account of each pod, which the controller manager makes.
	// Empty: the API server listens on the loopback interface alone, and there are no pods.
	Address string
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
	address   string // of API servers
	forPods   map[string][]string
	logs      *logs
	etcd      *envtest.Etcd
	client    *clientv3.Client
	authority *authority

	adminToken string
	admin      *rest.Config

	mu       sync.Mutex
	server   *envtest.APIServer
	serving  bool
	started  []*process.Process
	finished chan struct{} // closed when the last server has ended
	stop     func() error
}

// Dir is the folder with data, credentials and logs.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Config returns the cluster administrator's configuration for the first API server, without a client-side rate limit.
// The caller owns the copy.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.admin) }

// Etcd returns a client of etcd, to read what the API servers have stored. Stop closes it.
func (cp *ControlPlane) Etcd() *clientv3.Client { return cp.client }

// EtcdEndpoint is etcd's client URL.
func (cp *ControlPlane) EtcdEndpoint() string { return cp.etcd.URL.String() }

// checkStartable is called before each start, because a server that starts after Stop would be left running.
func (cp *ControlPlane) checkStartable(ctx context.Context) error {
	select {
	case <-cp.finished:
		return errors.New("the control plane is stopped")
	default:
		return context.Cause(ctx)
	}
}

// run starts a server and returns when it is ready. It stops a server that does not become ready.
func (cp *ControlPlane) run(ctx context.Context, name string, command *exec.Cmd, ready func(context.Context) error) (*process.Process, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.checkStartable(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	for _, other := range cp.started {
		if other.Name() == name && !other.Ended() {
			return nil, fmt.Errorf("start %s: it runs already", name)
		}
	}
	out, err := cp.logs.open(name)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = out, out
	command.Env = append(command.Environ(), process.GOGC)
	server, err := process.Start(name, command)
	if err != nil {
		return nil, err
	}
	if err := server.Await(ctx, name+" to be ready", ready); err != nil {
		// The log of the server says more than the error of Stop.
		_ = server.Stop()
		return nil, fmt.Errorf("start %s: %w%s", name, err, cp.logs.tail(name))
	}
	cp.started = append(cp.started, server)
	return server, nil
}
