package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// DefaultKubeconfig is what --keep writes, in the working directory.
const DefaultKubeconfig = "godwit-demo.kubeconfig"

// keep says how to use the cluster. The file is written before the story's last
// line, and removed by the function that is returned.
func (d *demo) keep(path string) (remove func() error, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if err := controlplane.WriteKubeconfig(path, d.plane.Config()); err != nil {
		return nil, err
	}
	d.teller.chapter("The cluster is yours until Ctrl-C")
	d.teller.say("$ export KUBECONFIG=%s\n$ kubectl get httproutes -A\n$ %s crd plan", path, d.program.typed)
	d.teller.say("etcd is at %s; logs are in %s", d.plane.EtcdEndpoint(), d.plane.Dir())
	return func() error { return os.Remove(path) }, nil
}

// await returns when the user has had enough.
func await(ctx context.Context, remove func() error) error {
	<-ctx.Done()
	if err := remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
