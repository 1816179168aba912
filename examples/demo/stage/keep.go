package stage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// End ends a story: sum prints the last line. With --keep, the cluster runs until the context
// ends, and End first prints commands that the user can try.
func (s *Stage) End(ctx context.Context, sum func(context.Context) error, commands ...string) error {
	if !s.options.Keep {
		return sum(ctx)
	}
	remove, err := s.keep(commands)
	if err != nil {
		return err
	}
	return errors.Join(sum(ctx), await(ctx, remove))
}

// keep prints how to use the cluster and writes the kubeconfig. The function that it returns
// removes the kubeconfig.
func (s *Stage) keep(commands []string) (remove func() error, err error) {
	path, err := filepath.Abs(s.options.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := s.writeKubeconfig(path); err != nil {
		return nil, err
	}
	s.Teller.Chapter("The cluster runs until you press Ctrl-C")
	s.Teller.Command("export KUBECONFIG=" + path)
	for _, command := range commands {
		s.Teller.Command(command)
	}
	s.Teller.Paragraph("etcd is at %s; logs are in %s", s.Plane.EtcdEndpoint(), s.Plane.Dir())
	return func() error { return os.Remove(path) }, nil
}

// await returns when the user presses Ctrl-C, after it has removed the kubeconfig.
func await(ctx context.Context, remove func() error) error {
	<-ctx.Done()
	if err := remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
