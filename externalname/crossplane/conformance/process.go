package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// program is a provider that runs as a process.
type program struct {
	command *exec.Cmd
	folder  string
	done    chan struct{}
}

// kill sends SIGKILL.
func (p *program) kill() { _ = p.command.Process.Kill() } // It may have ended.

func (p *program) wait() {
	<-p.done
	_ = os.RemoveAll(p.folder)
}

// startProcess starts the program. The last lines that it prints are part of the evidence.
func (e *environment) startProcess(ctx context.Context) (running, error) {
	folder, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, e.harness.Config, e.namespace); err != nil {
		return nil, err
	}
	p := &program{command: e.provider.Command(ctx, kubeconfig), folder: folder, done: make(chan struct{})}
	output := &tail{}
	if p.command.Stdout == nil {
		p.command.Stdout = output
	}
	if p.command.Stderr == nil {
		p.command.Stderr = output
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	go func() {
		defer close(p.done)
		_ = p.command.Wait() // A provider that is killed ends with an error.
	}()
	e.output = output.String
	return p, nil
}

// writeKubeconfig writes the configuration for a program.
func writeKubeconfig(path string, from *rest.Config, namespace string) error {
	const name = "conformance"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   from.Host,
		CertificateAuthority:     from.CAFile,
		CertificateAuthorityData: from.CAData,
		InsecureSkipTLSVerify:    from.Insecure,
		TLSServerName:            from.ServerName,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token: from.BearerToken, TokenFile: from.BearerTokenFile,
		ClientCertificate: from.CertFile, ClientCertificateData: from.CertData,
		ClientKey: from.KeyFile, ClientKeyData: from.KeyData,
		Username: from.Username, Password: from.Password,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig of the provider: %w", err)
	}
	return nil
}

// tail keeps the end of what a program prints.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// tailBytes is enough for the last lines of a log.
const tailBytes = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if surplus := len(t.data) - tailBytes; surplus > 0 {
		t.data = bytes.Clone(t.data[surplus:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}

// start starts the provider, or restarts it after a kill.
func (e *environment) start(ctx context.Context) error {
	var started running
	var err error
	switch p := e.provider; {
	case p.Setup != nil:
		started, err = e.startManager(ctx, p.Setup)
	case p.Client != nil:
		started, err = e.startManager(ctx, e.setUpClient)
	case p.Command != nil:
		started, err = e.startProcess(ctx)
	default:
		err = errors.New("start the provider: one of Setup, Client and Command has to be set")
	}
	if err != nil {
		return asPreparationError(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = started
	return nil
}
