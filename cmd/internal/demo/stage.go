package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// Options say how to show the demo.
type Options struct {
	// Program is what the user types for godwit.
	Program string
	// Out receives the story. ErrOut, if it is a terminal, receives the progress
	// of the commands in it.
	Out, ErrOut io.Writer
	// Keep leaves the cluster running until the context ends.
	Keep bool
	// Kubeconfig is the file that Keep writes; empty means DefaultKubeconfig.
	Kubeconfig string
}

// stage is common to both demos: a control plane and the godwit program.
type stage struct {
	teller  *teller
	program *program
	plane   *controlplane.ControlPlane
	clients kubernetes.Interface
	objects dynamic.Interface
	// contexts are those of the kubeconfig, if a demo has more than one control plane. context is the
	// name of the one of plane.
	contexts map[string]*rest.Config
	context  string
}

// open starts the servers. The caller stops the control plane.
func (s *stage) open(ctx context.Context, o Options) (err error) {
	if s.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return fmt.Errorf("start a control plane for the demo: %w", err)
	}
	if err := s.connect(o); err != nil {
		return errors.Join(err, s.plane.Stop())
	}
	return nil
}

func (s *stage) connect(o Options) error {
	config := s.plane.Config()
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the godwit program: %w", err)
	}
	s.program = &program{
		path: path, typed: o.Program, teller: s.teller, errOut: o.ErrOut,
		kubeconfig: filepath.Join(s.plane.Dir(), "kubeconfig"),
	}
	if err := s.writeKubeconfig(s.program.kubeconfig); err != nil {
		return err
	}
	if s.clients, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	if s.objects, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	version, err := s.clients.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", config.Host, err)
	}
	s.teller.say("Kubernetes %s at %s, etcd at %s", version.GitVersion, config.Host, s.plane.EtcdEndpoint())
	return nil
}

// writeKubeconfig writes a kubeconfig for the control plane, or one with a context for each of several.
func (s *stage) writeKubeconfig(path string) error {
	if len(s.contexts) == 0 {
		return controlplane.WriteKubeconfig(path, s.plane.Config())
	}
	all := clientcmdapi.NewConfig()
	for name, config := range s.contexts {
		text, err := controlplane.Kubeconfig(config)
		if err != nil {
			return fmt.Errorf("render the kubeconfig of %s: %w", name, err)
		}
		one, err := clientcmd.Load(text)
		if err != nil {
			return fmt.Errorf("read the kubeconfig of %s: %w", name, err)
		}
		from := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[from.Cluster], one.AuthInfos[from.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	all.CurrentContext = s.context
	text, err := clientcmd.Write(*all)
	if err != nil {
		return fmt.Errorf("render the kubeconfig: %w", err)
	}
	return keyutil.WriteKey(path, text)
}
