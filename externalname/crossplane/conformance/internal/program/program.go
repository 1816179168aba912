// Package program runs a provider as a process, with a kubeconfig for the API server of a test.
package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Program is a provider that runs as a process.
type Program struct {
	command *exec.Cmd
	folder  string
	done    chan struct{}
	output  *tail
}

// Start starts the program that command returns, with a kubeconfig whose context has the namespace.
func Start(ctx context.Context, config *rest.Config, namespace string, command func(ctx context.Context, kubeconfig string) *exec.Cmd) (*Program, error) {
	folder, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, config, namespace); err != nil {
		return nil, err
	}
	p := &Program{command: command(ctx, kubeconfig), folder: folder, done: make(chan struct{}), output: &tail{}}
	if p.command.Stdout == nil {
		p.command.Stdout = p.output
	}
	if p.command.Stderr == nil {
		p.command.Stderr = p.output
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	go func() {
		defer close(p.done)
		_ = p.command.Wait() // A provider that is killed ends with an error.
	}()
	return p, nil
}

// Output returns the last lines that the program has printed, unless its command has outputs of its own.
func (p *Program) Output() string { return p.output.String() }

// Kill sends SIGKILL. It does not wait.
func (p *Program) Kill() { _ = p.command.Process.Kill() } // It may have ended.

// Wait returns when the program has ended.
func (p *Program) Wait() {
	<-p.done
	_ = os.RemoveAll(p.folder)
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
