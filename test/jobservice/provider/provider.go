// Package provider starts the provider of the job service as a process, for programs that must not import crossplane-runtime.
// The program is test/externalname/jobprovider, which package program compiles.
//
// It has the CRD of the kind, but not its Go types, which need crossplane-runtime.
package provider

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// Resource and Kind identify the managed resources of the provider.
var (
	Resource = schema.GroupVersionResource{Group: "jobs.example.org", Version: "v1", Resource: "databases"}
	Kind     = Resource.GroupVersion().WithKind("Database")
)

//go:embed databases.yaml
var crd []byte

// CRDs returns the CRDs of the provider.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) { return controlplane.DecodeCRDs(crd) }

// Options say how the provider runs.
type Options struct {
	// Program is the path of the compiled program.
	Program string
	// Kubeconfig is the path of a file.
	Kubeconfig string
	// Service is the URL of the job service.
	Service string
	// ByHand runs the controller that is written on crossplane-runtime alone.
	ByHand bool
	// Poll is the time between two observations of a resource; 0 means a minute.
	Poll time.Duration
	// Rate is how many reconciliations begin per second, and how many run at the same time; 0 means 10, as in Crossplane's
	// template of a provider.
	Rate int
	// CreationGrace is the time after a creation in which crossplane-runtime does not believe that a resource is gone; 0 means its
	// default, 30 s.
	CreationGrace time.Duration
	// Metrics is the address at which the provider serves metrics; empty means none.
	Metrics string
	// Log receives the log.
	Log io.Writer
}

func (o Options) args() []string {
	args := []string{"run", "--service=" + o.Service, "--by-hand=" + strconv.FormatBool(o.ByHand)}
	if o.Poll > 0 {
		args = append(args, "--poll="+o.Poll.String())
	}
	if o.Rate > 0 {
		args = append(args, "--max-reconcile-rate="+strconv.Itoa(o.Rate))
	}
	if o.CreationGrace > 0 {
		args = append(args, "--creation-grace="+o.CreationGrace.String())
	}
	if o.Metrics != "" {
		args = append(args, "--metrics-bind-address="+o.Metrics)
	}
	return args
}

// Process is a running provider. It also ends with the process that has started it.
type Process struct {
	command *exec.Cmd
	input   io.Closer
	ended   chan struct{} // closed when the process has ended
	failure error         // valid once ended is closed
}

// Start starts the provider. It does not wait for its caches.
func Start(o Options) (*Process, error) {
	command := exec.Command(o.Program, o.args()...) //nolint:noctx // The program is ours, and Stop ends it.
	command.Env = append(os.Environ(), "KUBECONFIG="+o.Kubeconfig)
	command.Stdout, command.Stderr = o.Log, o.Log
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	p := &Process{command: command, input: input, ended: make(chan struct{})}
	go func() {
		p.failure = command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID is the ID of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Err returns an error if the provider has ended by itself.
func (p *Process) Err() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the provider has ended: %v", p.failure) //nolint:errorlint // nil after an orderly end
	default:
		return nil
	}
}

// stopTimeout is the time that the provider has to end a reconciliation.
const stopTimeout = 10 * time.Second

// Stop ends the provider, and kills it if it does not end in time. A signal from the terminal may have ended it before.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.input.Close()
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
	case <-time.After(stopTimeout):
	}
	err := p.command.Process.Signal(syscall.SIGKILL)
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
