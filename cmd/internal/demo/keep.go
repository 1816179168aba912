package demo

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
)

// DefaultKubeconfig is what --keep writes, in the working directory.
const DefaultKubeconfig = "godwit-demo.kubeconfig"

// end prints the last line, which is sum's. With --keep, the cluster runs until the context
// ends. look are commands to start with.
func (s *stage) end(ctx context.Context, o Options, sum func(context.Context) error, look ...string) error {
	if !o.Keep {
		return sum(ctx)
	}
	remove, err := s.keep(cmp.Or(o.Kubeconfig, DefaultKubeconfig), look)
	if err != nil {
		return err
	}
	return errors.Join(sum(ctx), await(ctx, remove))
}

// keep prints how to use the cluster and writes the kubeconfig. The function that it returns
// removes the kubeconfig.
func (s *stage) keep(path string, look []string) (remove func() error, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if err := s.writeKubeconfig(path); err != nil {
		return nil, err
	}
	s.teller.chapter("The cluster runs until you press Ctrl-C")
	s.teller.say("$ export KUBECONFIG=%s", path)
	for _, command := range look {
		s.teller.say("$ %s", command)
	}
	s.teller.say("etcd is at %s; logs are in %s", s.plane.EtcdEndpoint(), s.plane.Dir())
	return func() error { return os.Remove(path) }, nil
}

// await returns when the user presses Ctrl-C.
func await(ctx context.Context, remove func() error) error {
	<-ctx.Done()
	if err := remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
