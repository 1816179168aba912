package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/process"
)

// pauseImage is for the first process of each pod.
const pauseImage = "localhost/pause:latest"

// Node is a node of a cluster, with folders, a network and cgroups of its own.
type Node struct {
	Name string

	cluster    *Cluster
	dir        string
	address    string
	network    string // of its pods
	bridge     string
	config     string // of its kubelet
	kubeconfig string
	containerd *process.Process
	kubelet    *process.Process
}

// AddNode adds a node, and returns when it is ready. The name of the cluster is before that of the node, if it has one.
func (c *Cluster) AddNode(ctx context.Context, name string) (*Node, error) {
	number := len(c.nodes)
	n := &Node{
		Name: c.addresses.nodeName(name), cluster: c, dir: filepath.Join(c.dir, name), bridge: fmt.Sprintf("godwit%d", number),
		address: fmt.Sprintf("10.244.%d.1", c.addresses.first+number), network: fmt.Sprintf("10.244.%d.0/24", c.addresses.first+number),
	}
	c.nodes = append(c.nodes, n)
	if err := n.prepare(); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	if err := n.startContainerd(ctx); err != nil {
		return nil, err
	}
	pause, err := n.cluster.pause(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.load(ctx, pause); err != nil {
		return nil, err
	}
	if err := n.StartKubelet(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Node) prepare() error {
	for _, dir := range []string{"cni", "kubelet", "pod-logs"} {
		if err := os.MkdirAll(filepath.Join(n.dir, dir), 0o755); err != nil { //nolint:gosec // as on a node
			return err
		}
	}
	if err := machine.MakeCgroup(n.Name); err != nil {
		return err
	}
	if err := addBridge(n.cluster.network.links, n.bridge, n.address+"/24"); err != nil {
		return err
	}
	// Pods have routes to others, and rules for what a bridge forwards.
	if err := n.cluster.network.set("1", "net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"); err != nil {
		return err
	}
	if err := n.writeNetwork(); err != nil {
		return err
	}
	var err error
	if n.kubeconfig, err = n.cluster.kubeconfigOf(n.Name, "system:node:"+n.Name, "system:nodes"); err != nil {
		return err
	}
	n.config, err = n.writeKubeletConfig()
	return err
}

// writeNetwork writes the configuration of CNI plugins.
func (n *Node) writeNetwork() error {
	_, err := writeConfig(filepath.Join(n.dir, "cni", "10-bridge.conflist"), map[string]any{
		"cniVersion": "1.0.0", "name": n.Name, "plugins": []any{map[string]any{
			"type": "bridge", "bridge": n.bridge, "isGateway": true, "hairpinMode": true,
			"ipam": map[string]any{
				"type": "host-local", "dataDir": filepath.Join(n.dir, "addresses"),
				"ranges": []any{[]any{map[string]any{"subnet": n.network}}}, "routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
			},
		}},
	})
	return err
}

func (n *Node) writeKubeletConfig() (string, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return "", err
	}
	return writeConfig(filepath.Join(n.dir, "kubelet.yaml"), map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": n.address, "port": port, "healthzPort": 0,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
			"x509": map[string]any{"clientCAFile": n.cluster.ClientCAFile()},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + n.socket(),
		"podLogsDir":               filepath.Join(n.dir, "pod-logs"),
		"cgroupDriver":             "cgroupfs", "cgroupRoot": "/" + n.Name, "enforceNodeAllocatable": []string{"pods"},
		// Kernels of tests may have version 1, or swap.
		"failCgroupV1": false, "failSwapOn": false,
		// The disk of the machine is that of others, too.
		"evictionHard":                map[string]any{"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
		"imageGCHighThresholdPercent": 100,
		// No server of DNS has the address. Without one, each pod would have an event about it.
		"resolvConf": "", "clusterDNS": []string{"10.0.0.10"},
	})
}

func (n *Node) socket() string { return filepath.Join(n.dir, "containerd.sock") }

// containerdConfig has paths of the node alone. Where the machine may not lower the score by which the kernel chooses a
// process to kill (CAP_SYS_RESOURCE), containers get that of containerd.
const containerdConfig = `version = 3
root = %[1]q
state = %[2]q
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = %[3]q
[plugins."io.containerd.internal.v1.opt"]
  path = %[4]q
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = %[5]q
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = [%[6]q]
  conf_dir = %[7]q
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`

func (n *Node) startContainerd(ctx context.Context) error {
	in := func(name string) string { return filepath.Join(n.dir, name) }
	config := fmt.Sprintf(containerdConfig, in("containerd"), in("state"), n.socket(), in("opt"), pauseImage, n.cluster.programs.cni, in("cni"))
	if err := os.WriteFile(in("containerd.toml"), []byte(config), 0o600); err != nil {
		return err
	}
	name := "containerd-" + n.Name
	var err error
	if n.containerd, err = n.cluster.startProcess(name, n.cluster.programs.command("containerd", "--config="+in("containerd.toml"))); err != nil {
		return err
	}
	err = n.containerd.Await(ctx, name, func(ctx context.Context) error {
		_, err := n.ctr(ctx, "version")
		return err
	})
	if err != nil {
		return fmt.Errorf("%w%s", err, n.cluster.Log(name))
	}
	return nil
}

// ctr runs containerd's client in the namespace of Kubernetes.
func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	return n.cluster.programs.run(ctx, nil, "ctr", n.ctrArgs(args...)...)
}

func (n *Node) ctrArgs(args ...string) []string {
	return append([]string{"--address=" + n.socket(), "--namespace=k8s.io"}, args...)
}

// StartKubelet starts the kubelet, also again after StopKubelet, and returns when the node is ready.
func (n *Node) StartKubelet(ctx context.Context) error {
	name := "kubelet-" + n.Name
	command := n.cluster.programs.command("kubelet", "--config="+n.config, "--kubeconfig="+n.kubeconfig, "--root-dir="+filepath.Join(n.dir, "kubelet"),
		"--cert-dir="+filepath.Join(n.dir, "kubelet-certificates"), "--hostname-override="+n.Name, "--node-ip="+n.address)
	var err error
	if n.kubelet, err = n.cluster.startProcess(name, command); err != nil {
		return err
	}
	err = n.kubelet.Await(ctx, n.Name+" to be ready", func(ctx context.Context) error {
		there, err := n.cluster.Clients.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range there.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", there.Status.Conditions)
	})
	if err != nil {
		return fmt.Errorf("%w%s", err, n.cluster.Log(name))
	}
	return nil
}

// KillContainer kills a container of the node, as an error of its program or the kernel does. The ID is that of a container status.
func (n *Node) KillContainer(ctx context.Context, id string) error {
	return n.signal(ctx, id, "SIGKILL")
}

// FreezeContainer stops the program of a container, which then answers no probe.
func (n *Node) FreezeContainer(ctx context.Context, id string) error {
	return n.signal(ctx, id, "SIGSTOP")
}

func (n *Node) signal(ctx context.Context, id, signal string) error {
	_, err := n.ctr(ctx, "tasks", "kill", "--signal="+signal, strings.TrimPrefix(id, "containerd://"))
	return err
}

// ExhaustMemory takes all memory that a container may have, so that the kernel kills its program.
func (n *Node) ExhaustMemory(ctx context.Context, id string) error {
	out, err := n.ctr(ctx, "tasks", "list")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line) // TASK PID STATUS
		if len(fields) < 2 || fields[0] != strings.TrimPrefix(id, "containerd://") {
			continue
		}
		pid, err := strconv.Atoi(fields[1])
		if err != nil {
			return fmt.Errorf("read the process of container %s: %w", id, err)
		}
		return machine.ExhaustMemory(ctx, pid)
	}
	return fmt.Errorf("container %s does not run on %s", id, n.Name)
}

// StopKubelet ends the kubelet. Containers run.
func (n *Node) StopKubelet() error { return n.kubelet.Stop() }

func (n *Node) stop() error {
	var errs []error
	for _, p := range []*process.Process{n.kubelet, n.containerd} {
		if p != nil && !p.Ended() {
			errs = append(errs, p.Stop())
		}
	}
	return errors.Join(errs...)
}
