package ocm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

// StartAccounts starts the agent of the add-on managed-serviceaccount for a hub that is a managed cluster of the global hub: it keeps
// tokens of ServiceAccounts of the hub in Secrets of the global hub, as ManagedServiceAccounts there say. The global hub
// must serve that kind. The caller stops the process before the hubs.
func StartAccounts(ctx context.Context, global, cluster *Hub, namespace string) (*process.Process, error) {
	program, err := compiled("managed-serviceaccount")
	if err != nil {
		return nil, err
	}
	hub, spoke := filepath.Join(cluster.Dir(), "accounts-hub.kubeconfig"), filepath.Join(cluster.Dir(), "accounts-spoke.kubeconfig")
	for file, h := range map[string]*Hub{hub: global, spoke: cluster} {
		if err := controlplane.WriteKubeconfig(file, h.Config()); err != nil {
			return nil, err
		}
	}
	log := filepath.Join(cluster.Dir(), "managed-serviceaccount.log")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	command := exec.Command(program, "--hub-kubeconfig="+hub, "--spoke-kubeconfig="+spoke, "--cluster-name="+cluster.Name, "--namespace="+namespace)
	command.Stdout, command.Stderr = out, out
	p, err := process.Start("managed-serviceaccount of "+cluster.Name, command)
	if err != nil {
		return nil, err
	}
	// The agent ends at once if the kind is not served.
	if err := p.Await(ctx, "managed-serviceaccount to start", func(context.Context) error {
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte("Starting workers")) {
			return errors.New("its controller has not started")
		}
		return nil
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w%s", err, process.Tail(log)), p.Kill())
	}
	return p, nil
}
