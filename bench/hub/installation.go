package main

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kafka"
	"github.com/godwit-dev/godwit/test/process"
)

// installation is Godwit as users install it: a broker, the manager, and an agent on each hub.
type installation struct {
	bench                   *frame.Bench
	fleet                   *fleet
	broker                  *kafka.Broker
	manager, source, target *frame.Process
	// metrics has the address at which a process serves metrics, by the name of the process.
	metrics map[string]string
}

// install starts Godwit. The source hub is the global hub, too.
func install(ctx context.Context, b *frame.Bench, f *fleet) (in *installation, err error) {
	in = &installation{bench: b, fleet: f, metrics: map[string]string{}}
	if err := in.registerHubs(ctx); err != nil {
		return nil, err
	}
	if in.broker, err = kafka.Start(ctx, kafka.Options{}); err != nil {
		return nil, err
	}
	b.Cleanup(in.broker.Stop)
	if in.manager, err = in.start(f.source, "manager", "--controllers=clusterMigration", "--leader-elect-namespace="+managerNamespace); err != nil {
		return nil, err
	}
	key, err := publicKey(ctx, f.source, managerNamespace)
	if err != nil {
		return nil, err
	}
	enrolled := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: manager.EnrolledHubs}, Data: map[string]string{}}
	for h, p := range map[*hub]**frame.Process{f.source: &in.source, f.target: &in.target} {
		if *p, err = in.start(h, "agent", "--namespace="+agentNamespace, "--hub="+h.Name, "--manager-key="+key); err != nil {
			return nil, err
		}
		if enrolled.Data[h.Name], err = publicKey(ctx, h, agentNamespace); err != nil {
			return nil, err
		}
	}
	return in, f.source.Client.Create(ctx, enrolled)
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
	if err := in.fleet.create(ctx, []string{hubs[0].Name, hubs[1].Name}, ""); err != nil {
		return err
	}
	for _, h := range hubs {
		mc := &clusterv1.ManagedCluster{}
		if err := global.Client.Get(ctx, client.ObjectKey{Name: h.Name}, mc); err != nil {
			return err
		}
		before := mc.DeepCopy()
		mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: h.Config().Host, CABundle: h.Config().CAData}}
		if err := global.Client.Patch(ctx, mc, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// start starts godwit with a kubeconfig of a hub.
func (in *installation) start(h *hub, command string, args ...string) (p *frame.Process, err error) {
	name := command + "-" + h.Name
	kubeconfig := filepath.Join(in.bench.Dir, name+".kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, h.Config()); err != nil {
		return nil, err
	}
	if in.metrics[name], err = controlplane.FreeAddress(); err != nil {
		return nil, err
	}
	p, err = in.bench.Start(name, exec.Command(in.bench.Binary, append([]string{
		command, "--kubeconfig=" + kubeconfig, "--kafka-brokers=" + in.broker.Address(), "--kafka-plaintext",
		"--metrics-bind-address=" + in.metrics[name], "--metrics-insecure", "--health-probe-bind-address=0", "--leader-elect=false",
	}, args...)...))
	if err == nil {
		in.bench.Cleanup(p.Stop)
	}
	return p, err
}

// publicKey waits for the identity that a process creates at its first start.
func publicKey(ctx context.Context, h *hub, namespace string) (key string, err error) {
	err = process.Poll(ctx, fmt.Sprintf("the identity in namespace %s of %s", namespace, h.Name), func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := h.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: identity.Secret}, secret); err != nil {
			return err
		}
		key = string(secret.Data[identity.Public])
		return nil
	})
	return key, err
}

// sent returns the size of Godwit's topics, in bytes.
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

// part is the cost of a process.
type part struct {
	PeakRSSMiB float64 `json:"peakRSSMiB"`
	CPUSeconds float64 `json:"cpuSeconds"`
}

func cost(p *frame.Process) (part, error) {
	u, err := p.Usage()
	return part{PeakRSSMiB: frame.MiB(u.PeakRSS), CPUSeconds: u.CPU}, err
}

// requests returns how many requests each process has sent to API servers, by the name of the process.
func (in *installation) requests(ctx context.Context) (account.Count, error) {
	all := account.Count{}
	for name, address := range in.metrics {
		m, err := account.GetMetrics(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("read the metrics of %s: %w", name, err)
		}
		all[name] = m.Sum("rest_client_requests_total")
	}
	return all, nil
}
