package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	// crdFile is relative to the folder of this module, as the defaults of the
	// flags are.
	crdFile = "../api/v1alpha1/crd/godwit.dev_crdmigrations.yaml"

	startTimeout = 2 * time.Minute
)

// installManager prepares the cluster and the files that every process needs.
func (b *bench) installManager(ctx context.Context) error {
	var err error
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	text, err := os.ReadFile(crdFile)
	if err != nil {
		return err
	}
	crds, err := controlplane.DecodeCRDs(text)
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, b.plane.Config(), crds...); err != nil {
		return err
	}
	if b.user, err = account.AddUser(ctx, b.plane, account.Godwit); err != nil {
		return err
	}
	if err := controlplane.WriteKubeconfig(b.file("kubeconfig"), b.user); err != nil {
		return err
	}
	return errors.Join(b.configure(configured, b.limits), b.configure(unpaced, "{maxWritesPerSecond: 0}"))
}

// The configurations that a manager is started with.
const (
	configured = "configured.yaml" // what the flags say
	unpaced    = "unpaced.yaml"    // without a rate, as the command is that it is compared with
)

func (b *bench) configure(file, limits string) error {
	return os.WriteFile(b.file(file), []byte("apiVersion: config.godwit.dev/v1alpha1\nkind: ManagerConfiguration\n"+
		"storageVersionMigrator: {defaults: {settle: 0s}}\nlimits: "+limits+"\n"), 0o600)
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

// process is a manager under way.
type process struct {
	*exec.Cmd
	log   *os.File
	ended chan error
}

// start starts the manager as a Deployment does, with a configuration and more
// flags, and returns when it is ready. The context that it returns ends with the manager: a wait for its work ends, too.
func (b *bench) start(ctx context.Context, configuration string, flags ...string) (context.Context, *process, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, nil, err
	}
	log, err := os.Create(b.file("manager.log"))
	if err != nil {
		return nil, nil, err
	}
	p := &process{ended: make(chan error, 1), log: log}
	flags = append([]string{"manager", "--config=" + b.file(configuration), "--metrics-bind-address=0",
		"--health-probe-bind-address=" + address, "--leader-elect-namespace=default"}, flags...)
	p.Cmd = exec.CommandContext(ctx, b.binary, flags...)
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	p.Env = append(os.Environ(), "KUBECONFIG="+b.file("kubeconfig"))
	p.Stderr = log
	if err := p.Start(); err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	alive, end := context.WithCancelCause(ctx)
	go func() {
		err := p.Wait()
		end(errors.New("the manager ended"))
		p.ended <- err
	}()
	if err := p.awaitReady(alive, address); err != nil {
		return nil, nil, errors.Join(err, p.stop())
	}
	return alive, p, nil
}

func (p *process) awaitReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the manager to be ready: %w", context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stop ends the manager. What it had said is part of the error of one that failed.
func (p *process) stop() error {
	_ = p.Process.Signal(syscall.SIGTERM) // one that has ended says why below
	err := <-p.ended
	p.ended <- nil // stopped again, there is nothing left to say
	defer func() { _ = p.log.Close() }()
	if err == nil {
		return nil
	}
	said, _ := os.ReadFile(p.log.Name())
	return fmt.Errorf("the manager ended with %w:\n%s", err, said[max(0, len(said)-2000):])
}

func (p *process) usage() (proc.Usage, error) { return proc.UsageOf(p.Process.Pid) }

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
