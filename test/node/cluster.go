package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/process"
)

const (
	// serverAddress is that of the API server, in a network that no node has.
	serverAddress = "10.243.0.1"
	// podNetwork has the pods of all nodes. Each has one of its networks.
	podNetwork = "10.244.0.0/16"
	// proxyHealth can be a fixed address, because the machine has one cluster.
	proxyHealth = "127.0.0.1:10256"
)

// Options of a cluster. The zero value works.
type Options struct {
	// APIServerArgs are further flags of the API server, as --name=value.
	APIServerArgs []string
}

// Cluster is a control plane with nodes.
type Cluster struct {
	*controlplane.ControlPlane
	// Clients of the cluster's administrator.
	Clients *kubernetes.Clientset

	programs programs
	dir      string
	started  []*process.Process
	nodes    []*Node
}

// Start starts a cluster with a first node, which is ready, and an image for the first process of each pod. A machine has one cluster,
// which ends with the machine at the latest.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if machine.Folder() == "" {
		return nil, errors.New("start a cluster: it needs a machine of its own: call machine.Main in TestMain")
	}
	c := &Cluster{dir: machine.Folder()}
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
	if err := addBridge("godwit", serverAddress+"/24", true); err != nil {
		return err
	}
	c.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: filepath.Join(c.dir, "controlplane"), Address: serverAddress, APIServerArgs: o.APIServerArgs,
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

// startProxy starts the one kube-proxy of the machine, whose nodes share a network.
func (c *Cluster) startProxy(ctx context.Context) error {
	const name = "kube-proxy"
	kubeconfig, err := c.kubeconfigOf(name, "system:kube-proxy")
	if err != nil {
		return err
	}
	config, err := writeConfig(filepath.Join(c.dir, name+".yaml"), map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"clientConnection": map[string]any{"kubeconfig": kubeconfig},
		"mode":             "iptables", "detectLocalMode": "ClusterCIDR", "clusterCIDR": podNetwork,
		"hostnameOverride": c.nodes[0].Name, "healthzBindAddress": proxyHealth,
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
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+proxyHealth+"/healthz", http.NoBody)
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

func (c *Cluster) startProcess(name string, command *exec.Cmd) (*process.Process, error) {
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

// addBridge adds a network to the machine. The default route goes to one of them, so that addresses of Services are not unreachable
// before a rule of kube-proxy changes them.
func addBridge(name, address string, defaultRoute bool) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("add bridge %s: %w", name, err)
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(bridge, parsed); err != nil {
		return fmt.Errorf("add address %s: %w", address, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("set bridge %s up: %w", name, err)
	}
	if !defaultRoute {
		return nil
	}
	everything := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Index, Dst: everything}); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	return nil
}

// writeConfig writes JSON, which every program reads that reads YAML.
func writeConfig(path string, value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o600)
}
