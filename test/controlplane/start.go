package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/test/process"
)

// Start starts etcd and an API server, and returns when the API server serves, after 3 to 6 s. A start that is canceled or
// fails leaves no processes or files. A cancellation takes effect between two servers, and has no effect once Start has returned.
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
	if err := cp.chooseAddress(o.Address); err != nil {
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

// makeDir refuses a used folder: envtest would reuse the serving certificate in it, without the authority that has signed it.
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

// awaitDefaultNamespace waits for the namespace in which most tests create their first object. The API server is ready
// before it has created its namespaces.
func (cp *ControlPlane) awaitDefaultNamespace(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(cp.admin)
	if err != nil {
		return fmt.Errorf("connect to kube-apiserver: %w", err)
	}
	return process.Poll(ctx, "the default namespace", func(ctx context.Context) error {
		_, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// Stop ends every server that was started here, and removes a temporary folder. It may be called again.
func (cp *ControlPlane) Stop() error { return cp.stop() }

// end stops all servers, the last started first, so that no server loses another on which it depends.
func (cp *ControlPlane) end() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	var errs []error
	for i := len(cp.started) - 1; i >= 0; i-- {
		errs = append(errs, cp.started[i].Stop())
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
