// Package hubagent is the process of a hub's agent: its clients, its endpoints, and its leader election.
package hubagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/cmd/internal/serving"
)

// Options are the flags of the process.
type Options struct {
	// Hub is the name of the hub, and ManagerKey the public key of the manager as text.
	Hub, ManagerKey    string
	BootstrapNamespace string
	// RulesFile has rules beside those of package resource; empty: none.
	RulesFile string
	Kafka     kafka.Options
	// Process is where the agent runs.
	Process serving.Options
	// RequestsPerSecond bounds the requests to the API server.
	RequestsPerSecond float32
}

// leaderElectionID is the name of the lease for leader election.
const leaderElectionID = "godwit-agent"

// Run runs the agent until the context ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	if o.Process.Namespace = o.Process.OwnNamespace(); o.Process.Namespace == "" {
		return errors.New("the namespace of the agent is not known outside of a cluster: give --namespace=NAMESPACE")
	}
	managerKey, err := identity.Parse(o.ManagerKey)
	if err != nil {
		return fmt.Errorf("--manager-key: %w", err)
	}
	rules, err := readRules(o.RulesFile)
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = o.RequestsPerSecond, int(2*o.RequestsPerSecond)
	mgr, err := manager.New(cfg, o.Process.Manager(scheme, leaderElectionID))
	if err != nil {
		return fmt.Errorf("make the agent: %w", err)
	}
	// The agent must see its own writes, so it must not read from a cache.
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("make the agent: %w", err)
	}
	// This check is before the election, so that an agent in the namespace of a manager ends at once.
	own, err := identity.Ensure(ctx, c, c, identity.Owner{Namespace: o.Process.Namespace, Name: o.Hub})
	if err != nil {
		return err
	}
	counted := agent.NewMetrics()
	if err := counted.Register(metrics.Registry); err != nil {
		return err
	}
	p := &elected{options: agent.Options{
		Client: c, Hub: o.Hub, Namespace: o.Process.Namespace, BootstrapNamespace: o.BootstrapNamespace,
		Manager: managerKey, Rules: rules, Metrics: counted, Identity: own,
	}, kafka: o.Kafka}
	if err := errors.Join(mgr.Add(p), mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1beta1.Install, workv1.Install, operatorv1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// readRules returns nil without a file.
func readRules(file string) ([]resource.Rule, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read --rules: %w", err)
	}
	var more []resource.Rule
	if err := yaml.UnmarshalStrict(text, &more); err != nil {
		return nil, fmt.Errorf("--rules: %s is not a list of rules: %w", file, err)
	}
	for i, r := range more {
		if r.Kind == "" {
			return nil, fmt.Errorf("--rules: rule %d of %s has no kind", i, file)
		}
	}
	return append(resource.Rules(), more...), nil
}

// elected runs the agent while the process is elected.
type elected struct {
	options agent.Options
	kafka   kafka.Options
}

// Start implements manager.Runnable, which runs while the process is elected.
func (p *elected) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx)) // the context of a runnable has no log, and package agent logs by its context alone
	own := p.options.Identity
	// A user enrolls the hub with the manager with this key.
	log.FromContext(ctx).Info("The agent starts", "hub", p.options.Hub, "publicKey", identity.Format(own.Key()), "fingerprint", identity.Fingerprint(own.Key()))
	p.kafka.ClientID = cmp.Or(p.kafka.ClientID, "godwit-agent-"+p.options.Hub)
	transport, err := kafka.New(p.kafka)
	if err != nil {
		return err
	}
	defer transport.Close()
	p.options.Transport = transport
	return agent.New(p.options).Run(ctx)
}
