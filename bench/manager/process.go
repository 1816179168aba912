package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/walk"
)

// crdFile is relative to the folder of this module, as the defaults of the flags are.
const crdFile = "../api/v1alpha1/crd/godwit.dev_crdmigrations.yaml"

// installManager prepares the cluster, and writes the configurations.
func (b *bench) installManager(ctx context.Context) error {
	text, err := os.ReadFile(crdFile)
	if err != nil {
		return err
	}
	crds, err := controlplane.DecodeCRDs(text)
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, b.cluster.Config(), crds...); err != nil {
		return err
	}
	return errors.Join(b.configure(configured, b.Limits), b.configure(unpaced, "{maxWritesPerSecond: 0}"))
}

// The configurations with which a manager is started.
const (
	configured = "configured.yaml" // with the limits of the flag
	unpaced    = "unpaced.yaml"    // without a rate, like the command that it is compared with
)

func (b *bench) configure(file, limits string) error {
	return os.WriteFile(filepath.Join(b.frame.Dir, file), []byte("apiVersion: config.godwit.dev/v1alpha1\nkind: ManagerConfiguration\n"+
		"storageVersionMigrator: {defaults: {settle: 0s}}\nlimits: "+limits+"\n"), 0o600)
}

// withManager starts the manager as a Deployment does, with a configuration and more flags, works while it runs, and stops it.
func (b *bench) withManager(ctx context.Context, configuration string, work func(context.Context, *frame.Process) error, flags ...string) (err error) {
	address, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	flags = append([]string{"manager", "--config=" + filepath.Join(b.frame.Dir, configuration), "--metrics-bind-address=0",
		"--health-probe-bind-address=" + address, "--leader-elect-namespace=default"}, flags...)
	p, err := b.frame.Start("manager", b.cluster.Command(flags...))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.End()) }()
	if err := p.Await(ctx, "the manager to be ready", func(ctx context.Context) error { return checkReady(ctx, address) }); err != nil {
		return err
	}
	return p.During(ctx, func(ctx context.Context) error { return work(ctx, p) })
}

func checkReady(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("/readyz answers %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

const (
	// quiet is the time without requests, except for the lease, after which a manager counts as idle.
	quiet = 5 * time.Second
	// quietTimeout is much longer than the start of a manager with two hundred CRDs.
	quietTimeout = 10 * time.Minute
)

// awaitQuiet waits until a manager that has just started has read everything.
func (b *bench) awaitQuiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, quietTimeout, errors.New("the manager does not come to rest"))
	defer cancel()
	for last := int64(-1); ; {
		count, err := b.cluster.Requests.Read(ctx)
		if err != nil {
			return err
		}
		now := count.Total() - count["update"] // the lease is renewed all the time
		if now == last {
			return nil
		}
		last = now
		if err := walk.Wait(ctx, quiet); err != nil {
			return err
		}
	}
}
