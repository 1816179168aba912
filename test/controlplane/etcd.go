package controlplane

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/godwit-dev/godwit/test/process"
)

// etcdQuota, in bytes, is the most that etcd's documentation recommends. Its default of 2 GB ends a benchmark of a
// million objects in NOSPACE.
const etcdQuota = 8 << 30

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
	if err := process.OnLastingThread(cp.finished, cp.etcd.Start); err != nil {
		return fmt.Errorf("start etcd: %w%s", err, cp.logs.tail("etcd"))
	}
	return process.Poll(ctx, "kube-apiserver to be ready", func(ctx context.Context) error { return serverReady(ctx, cp.admin) })
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
		StartTimeout: process.StartTimeout,
		StopTimeout:  process.StopTimeout,
	}
	etcd.Configure().Set("quota-backend-bytes", strconv.Itoa(etcdQuota))
	// The only member elects itself after the election timeout: one second with etcd's defaults of 100 and 1000 ms. A
	// heartbeat every 10 ms would cost an idle etcd 1% of a core.
	etcd.Configure().Set("heartbeat-interval", "50").Set("election-timeout", "250")
	cp.etcd = etcd
	if err := process.OnLastingThread(cp.finished, etcd.Start); err != nil {
		return fmt.Errorf("start etcd: %w%s", err, cp.logs.tail("etcd"))
	}
	// The client would log every connection that a test cuts on purpose.
	cp.client, err = clientv3.New(clientv3.Config{
		Endpoints:   []string{cp.EtcdEndpoint()},
		DialTimeout: process.StartTimeout,
		Logger:      zap.NewNop(),
	})
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	return nil
}
