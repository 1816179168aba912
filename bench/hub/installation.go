package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kafka"
	"github.com/godwit-dev/godwit/test/process"
)

// installation is Godwit as users install it: a broker, the manager, and an agent on each hub.
type installation struct {
	fleet                   *fleet
	broker                  *kafka.Broker
	folder                  string
	manager, source, target *process.Process
	// metrics are the addresses at which the processes serve them, by their names.
	metrics map[string]string
}

// install starts Godwit. The source hub is the global hub too.
func install(ctx context.Context, f *fleet, godwit, folder string) (in *installation, err error) {
	in = &installation{fleet: f, folder: folder, metrics: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.stop())
		}
	}()
	if err := in.registerHubs(ctx); err != nil {
		return in, err
	}
	if in.broker, err = kafka.Start(ctx, kafka.Options{}); err != nil {
		return in, err
	}
	if in.manager, err = in.start(ctx, f.source, godwit, "manager", "--controllers=clusterMigration", "--leader-elect-namespace="+managerNamespace); err != nil {
		return in, err
	}
	key, err := publicKey(ctx, f.source, managerNamespace)
	if err != nil {
		return in, err
	}
	enrolled := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: manager.EnrolledHubs}, Data: map[string]string{}}
	for h, p := range map[*hub]**process.Process{f.source: &in.source, f.target: &in.target} {
		if *p, err = in.start(ctx, h, godwit, "agent", "--namespace="+agentNamespace, "--hub="+h.Name, "--manager-key="+key); err != nil {
			return in, err
		}
		if enrolled.Data[h.Name], err = publicKey(ctx, h, agentNamespace); err != nil {
			return in, err
		}
	}
	return in, f.source.direct.Create(ctx, enrolled)
}

// registerHubs makes both hubs managed clusters of the global hub, with their addresses.
func (in *installation) registerHubs(ctx context.Context) error {
	global := in.fleet.source
	crds, err := controlplane.ReadCRDs("../cmd/hub/api/v1alpha1/crd/*.yaml")
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, global.Config(), crds...); err != nil {
		return err
	}
	hubs := []*hub{in.fleet.source, in.fleet.target}
	if err := in.fleet.create(ctx, global, []string{hubs[0].Name, hubs[1].Name}, setup{}); err != nil {
		return err
	}
	for _, h := range hubs {
		mc := &clusterv1.ManagedCluster{}
		if err := global.direct.Get(ctx, client.ObjectKey{Name: h.Name}, mc); err != nil {
			return err
		}
		before := mc.DeepCopy()
		mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: h.server(), CABundle: h.Config().CAData}}
		if err := global.direct.Patch(ctx, mc, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// start starts a process that has a kubeconfig of a hub.
func (in *installation) start(ctx context.Context, h *hub, program, command string, args ...string) (*process.Process, error) {
	name := command + "-" + h.Name
	kubeconfig := filepath.Join(in.folder, name+".kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, h.Config()); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(in.folder, name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own
	if in.metrics[name], err = freeAddress(ctx); err != nil {
		return nil, err
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), program, append([]string{
		command, "--kubeconfig=" + kubeconfig, "--kafka-brokers=" + in.broker.Address(), "--kafka-plaintext",
		"--metrics-bind-address=" + in.metrics[name], "--metrics-insecure", "--health-probe-bind-address=0", "--leader-elect=false",
	}, args...)...)
	c.Stdout, c.Stderr = log, log
	return process.Start(name, c)
}

// publicKey waits for the identity that a process makes at its first start.
func publicKey(ctx context.Context, h *hub, namespace string) (key string, err error) {
	err = process.Poll(ctx, fmt.Sprintf("the identity in namespace %s of %s", namespace, h.Name), func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := h.direct.Get(ctx, client.ObjectKey{Namespace: namespace, Name: identity.Secret}, secret); err != nil {
			return err
		}
		key = string(secret.Data[identity.Public])
		return nil
	})
	return key, err
}

// stop ends the processes and the broker.
func (in *installation) stop() error {
	var errs []error
	for _, p := range []*process.Process{in.manager, in.source, in.target} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	if in.broker != nil {
		errs = append(errs, in.broker.Stop())
	}
	return errors.Join(errs...)
}

// sent is what the topics of Godwit have, in bytes.
func (in *installation) sent() (total int64, err error) {
	err = filepath.WalkDir(in.broker.DataDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".log" || !strings.HasPrefix(filepath.Base(filepath.Dir(path)), "godwit.") {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// part is what a process has cost.
type part struct {
	PeakRSSMiB float64 `json:"peakRSSMiB"`
	CPUSeconds float64 `json:"cpuSeconds"`
}

func cost(p *process.Process) (part, error) {
	u, err := proc.UsageOf(p.PID())
	return part{PeakRSSMiB: float64(u.PeakRSS) / (1 << 20), CPUSeconds: u.CPU}, err
}

// freeAddress is one on which nothing listens.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
