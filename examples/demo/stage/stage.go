package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
	programs "github.com/godwit-dev/godwit/test/program"
)

// Options say how to show a story.
type Options struct {
	// Out receives the story. ErrOut, if it is a terminal, receives the progress
	// of the commands in it.
	Out, ErrOut io.Writer
	// Keep leaves the cluster running until the context ends.
	Keep bool
	// Kubeconfig is the file that Keep writes.
	Kubeconfig string
}

// Stage is a control plane and the godwit program.
type Stage struct {
	Teller  *Teller
	Program *Program
	Plane   *controlplane.ControlPlane
	Clients kubernetes.Interface
	Objects dynamic.Interface
	// Contexts are the contexts of the kubeconfig, if a story has more than one control plane. Context is
	// the name of the context of Plane.
	Contexts map[string]*rest.Config
	Context  string

	options Options
}

// New returns a stage without a control plane. The title is the first line of the story.
func New(o Options, title string) Stage {
	s := Stage{Teller: &Teller{out: o.Out, began: time.Now(), style: hasColour(o.Out), width: widthOf(o.Out)}, options: o}
	s.Teller.Line("%s The demo runs on this machine only.", title)
	return s
}

// Open starts the servers. The caller stops the control plane.
func (s *Stage) Open(ctx context.Context) (err error) {
	if s.Plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return fmt.Errorf("start a control plane for the demo: %w", err)
	}
	if err := s.Connect(ctx); err != nil {
		return errors.Join(err, s.Plane.Stop())
	}
	return nil
}

// Connect compiles godwit, and connects to the control plane.
func (s *Stage) Connect(ctx context.Context) error {
	path, err := programs.Godwit(ctx, s.Plane.Dir())
	if err != nil {
		return fmt.Errorf("compile the godwit program: %w", err)
	}
	config := s.Plane.Config()
	s.Program = s.NewProgram(path)
	if err := s.writeKubeconfig(s.Program.kubeconfig); err != nil {
		return err
	}
	if s.Clients, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	if s.Objects, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	version, err := s.Clients.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", config.Host, err)
	}
	s.Teller.Paragraph("Kubernetes %s at %s, etcd at %s", version.GitVersion, config.Host, s.Plane.EtcdEndpoint())
	return nil
}

// Kubeconfig returns the path of the kubeconfig that the programs of the story read.
func (s *Stage) Kubeconfig() string { return filepath.Join(s.Plane.Dir(), "kubeconfig") }

// NewProgram returns a program that the story runs, by its path.
func (s *Stage) NewProgram(path string) *Program {
	return &Program{path: path, Typed: filepath.Base(path), teller: s.Teller, errOut: s.options.ErrOut, kubeconfig: s.Kubeconfig(), dir: s.Plane.Dir()}
}

// Run shows the chapters one after the other, until one fails.
func Run(ctx context.Context, chapters ...func(context.Context) error) error {
	for _, chapter := range chapters {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig writes a kubeconfig for the control plane, or one with a context for each of several.
func (s *Stage) writeKubeconfig(path string) error {
	if len(s.Contexts) == 0 {
		return controlplane.WriteKubeconfig(path, s.Plane.Config())
	}
	return controlplane.WriteContexts(path, s.Context, s.Contexts)
}
