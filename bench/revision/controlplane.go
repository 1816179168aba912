package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
)

// settings are what the flags say.
type settings struct {
	binary     string
	vms        int
	namespaces int
	rounds     int
	larger     int
	plan       int
}

// onControlPlane works on a control plane that has KubeVirt's CRDs, and no VirtualMachine yet.
func onControlPlane(ctx context.Context, binary string, namespaces int, work func(*fleet, *command) error) (err error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := cluster.Install(ctx, plane.Config()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	user, err := account.AddUser(ctx, plane, account.Godwit)
	if err != nil {
		return err
	}
	c, err := newCommand(ctx, binary, filepath.Join(dir, "kubeconfig"), user, plane.Config())
	if err != nil {
		return err
	}
	f, err := newFleet(ctx, plane, user, namespaces)
	if err != nil {
		return err
	}
	return work(f, c)
}
