package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/process"
)

// Options of a cluster. The zero value works.
type Options struct {
	// APIServerArgs are further flags of the API server, as --name=value.
	APIServerArgs []string
	// Name is that of a cluster which shares its machine with clusters of other names. Its nodes have a network of their own, from which
	// pods reach the API servers of all. It has at most 12 bytes. Empty: the cluster is the only one of its machine.
	Name string
}

// Cluster is a control plane with nodes.
type Cluster struct {
	*controlplane.ControlPlane
	// Clients of the cluster's administrator.
	Clients *kubernetes.Clientset

	programs  programs
	addresses addresses
	network   *network
	dir       string
	started   []*process.Process
	nodes     []*Node
}

// Start starts a cluster with a first node, which is ready, and an image for the first process of each pod. The cluster ends with the
// machine at the latest.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if machine.Folder() == "" {
		return nil, errors.New("start a cluster: it needs a machine of its own: call machine.Main in TestMain")
	}
	c := &Cluster{}
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	var err error
	if c.programs, err = findPrograms(ctx); err != nil {
		return err
	}
	if c.addresses, err = chooseAddresses(o.Name); err != nil {
		return err
	}
	if c.dir, err = c.addresses.makeFolder(); err != nil {
		return err
	}
	if c.network, err = openNetwork(c.addresses); err != nil {
		return err
	}
	args := o.APIServerArgs
	if o.Name != "" {
		// The API server is not in the network where kube-proxy changes addresses of Services, so it calls webhooks at their pods.
		args = append([]string{"--enable-aggregator-routing=true"}, args...)
	}
	c.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: filepath.Join(c.dir, "controlplane"), Address: c.addresses.server, APIServerArgs: args,
	})
	if err != nil {
		return err
	}
	if c.Clients, err = kubernetes.NewForConfig(c.Config()); err != nil {
		return err
	}
	if _, err := c.StartControllerManager(ctx); err != nil {
		return err
	}
	if err := c.startScheduler(); err != nil {
		return err
	}
	if _, err := c.AddNode(ctx, "node1"); err != nil {
		return err
	}
	return c.startProxy(ctx)
}

// Node returns a node by its name, or nil.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Stop ends the control plane and the processes of nodes. Containers run until the machine ends.
func (c *Cluster) Stop() error {
	var errs []error
	for i := len(c.nodes) - 1; i >= 0; i-- {
		errs = append(errs, c.nodes[i].stop())
	}
	for i := len(c.started) - 1; i >= 0; i-- {
		p := c.started[i]
		if err := p.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("%w%s", err, c.Log(p.Name())))
		}
	}
	if c.ControlPlane != nil {
		errs = append(errs, c.ControlPlane.Stop())
	}
	if c.network != nil {
		errs = append(errs, c.network.close())
	}
	return errors.Join(errs...)
}

// Kubeconfig writes a file with the configuration of a user, and returns its path.
func (c *Cluster) Kubeconfig(name string, user *rest.Config) (string, error) {
	path := filepath.Join(c.dir, name+".kubeconfig")
	return path, controlplane.WriteKubeconfig(path, user)
}

// kubeconfigOf adds a user of the cluster, with its kubeconfig.
func (c *Cluster) kubeconfigOf(file, user string, groups ...string) (string, error) {
	config, err := c.AddUser(user, groups...)
	if err != nil {
		return "", err
	}
	return c.Kubeconfig(file, config)
}

// startScheduler does not wait: the first pod does.
func (c *Cluster) startScheduler() error {
	const name = "kube-scheduler"
	kubeconfig, err := c.kubeconfigOf(name, "system:kube-scheduler")
	if err != nil {
		return err
	}
	command := c.programs.command(name, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1",
		"--cert-dir="+filepath.Join(c.dir, name))
	return c.run(name, command)
}

// startProxy starts the one kube-proxy of the cluster, whose nodes share a network.
func (c *Cluster) startProxy(ctx context.Context) error {
	const name = "kube-proxy"
	kubeconfig, err := c.kubeconfigOf(name, "system:kube-proxy")
	if err != nil {
		return err
	}
	config, err := writeConfig(filepath.Join(c.dir, name+".yaml"), map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"clientConnection": map[string]any{"kubeconfig": kubeconfig},
		"mode":             "iptables", "detectLocalMode": "ClusterCIDR", "clusterCIDR": c.addresses.pods,
		"hostnameOverride": c.nodes[0].Name, "healthzBindAddress": c.addresses.proxyHealth,
		// Only the first network of a machine may change the limits of connections.
		"conntrack": map[string]any{"maxPerCore": 0},
	})
	if err != nil {
		return err
	}
	if err := c.run(name, c.programs.command(name, "--config="+config)); err != nil {
		return err
	}
	return c.started[len(c.started)-1].Await(ctx, "kube-proxy to write its rules", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addresses.proxyHealth+"/healthz", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", answer.Status)
		}
		return nil
	})
}

// run starts a process of the cluster. Its log is in the machine's folder.
func (c *Cluster) run(name string, command *exec.Cmd) error {
	p, err := c.startProcess(name, command)
	if err == nil {
		c.started = append(c.started, p)
	}
	return err
}

// startProcess starts a process in the network of the nodes.
func (c *Cluster) startProcess(name string, command *exec.Cmd) (*process.Process, error) {
	command, err := c.network.enter(command)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has it
	command.Stdout, command.Stderr = log, log
	return process.Start(name, command)
}

// Log returns the end of the log of a process of the cluster, for the error of a test.
func (c *Cluster) Log(name string) string { return process.Tail(filepath.Join(c.dir, name+".log")) }

// writeConfig writes JSON, which every program reads that reads YAML.
func writeConfig(path string, value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o600)
}
