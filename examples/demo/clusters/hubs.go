package clusters

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	hubidentity "github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	hubmanager "github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/test/controlplane"
	simulation "github.com/godwit-dev/godwit/test/hub"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

const (
	// sourceHub is also the global hub, on which the manager runs.
	sourceHub = "hub1"
	targetHub = "hub2"

	managerNamespace   = "godwit"
	agentNamespace     = "godwit-agent"
	bootstrapNamespace = "multicluster-engine"
	registrationRole   = "open-cluster-management:bootstrap"
)

// site is a managed cluster, with its objects as they were before the demo moved any.
type site struct {
	*klusterlet.Klusterlet
	before map[string]string
}

// demo is one run of the story.
type demo struct {
	stage.Stage
	target *controlplane.ControlPlane
	// hubs are clients of the API servers.
	hubs   map[string]client.Client
	broker []string

	ends  []func() error // end what runs in this process; closeHubs calls them in reverse order
	sites []*site
}

// openHubs starts both control planes, and installs a hub on each.
func (d *demo) openHubs(ctx context.Context) (err error) {
	log.SetLogger(logr.Discard())
	var second sync.WaitGroup
	var secondErr error
	second.Go(func() { d.target, secondErr = controlplane.Start(ctx, controlplane.Options{}) })
	d.Plane, err = controlplane.Start(ctx, controlplane.Options{})
	second.Wait()
	if err = errors.Join(err, secondErr); err != nil {
		return errors.Join(fmt.Errorf("start the control planes of the demo: %w", err), d.closeHubs())
	}
	d.Context, d.Contexts = sourceHub, map[string]*rest.Config{sourceHub: d.Plane.Config(), targetHub: d.target.Config()}
	if err := d.Connect(ctx); err != nil {
		return errors.Join(err, d.closeHubs())
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1beta1.Install, workv1.Install, operatorv1.Install, api.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return errors.Join(err, d.closeHubs())
		}
	}
	d.hubs = map[string]client.Client{}
	for name, config := range d.Contexts {
		if err := d.installHub(ctx, name, config, scheme); err != nil {
			return errors.Join(fmt.Errorf("make hub %s: %w", name, err), d.closeHubs())
		}
	}
	return nil
}

// closeHubs ends what runs in this process, and then the servers.
func (d *demo) closeHubs() (err error) {
	for i := len(d.ends) - 1; i >= 0; i-- {
		err = errors.Join(err, d.ends[i]())
	}
	for _, plane := range []*controlplane.ControlPlane{d.Plane, d.target} {
		if plane != nil {
			err = errors.Join(err, plane.Stop())
		}
	}
	return err
}

// accountCRD belongs to the add-on that issues tokens. The demo leaves the CRD out, so that the agent of the
// target hub issues the tokens.
const accountCRD = "managedserviceaccounts.authentication.open-cluster-management.io"

// installHub installs CRDs and namespaces, and the role by which clusters register.
func (d *demo) installHub(ctx context.Context, name string, config *rest.Config, scheme *runtime.Scheme) error {
	if err := simulation.InstallCRDs(ctx, config, accountCRD); err != nil {
		return err
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	d.hubs[name] = c
	for _, namespace := range []string{managerNamespace, agentNamespace, bootstrapNamespace, agent.AccountNamespace} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return err
		}
	}
	return c.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: registrationRole}})
}

// importHubs creates a ManagedCluster for each hub on the global hub.
func (d *demo) importHubs(ctx context.Context) error {
	for name, config := range d.Contexts {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == sourceHub {
			mc.Labels = map[string]string{"local-cluster": "true"}
		}
		mc.Spec.HubAcceptsClient = true
		mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: config.Host, CABundle: config.CAData}}
		c := d.hubs[sourceHub]
		if err := c.Create(ctx, mc); err != nil {
			return fmt.Errorf("import hub %s: %w", name, err)
		}
		meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "ManagedClusterAvailable", Message: "the hub is simulated",
		})
		if err := c.Status().Update(ctx, mc); err != nil {
			return fmt.Errorf("import hub %s: %w", name, err)
		}
	}
	return nil
}

// run runs f in this process until the end of the demo. closeHubs returns the error of f.
func (d *demo) run(ctx context.Context, what string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // after an interrupt, too, closeHubs ends f before the servers
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	d.ends = append(d.ends, func() error {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// startBroker starts a broker in this process.
func (d *demo) startBroker() error {
	addresses, stop, err := simulation.StartBroker()
	if err != nil {
		return err
	}
	d.broker = addresses
	d.ends = append(d.ends, func() error { stop(); return nil })
	return nil
}

func (d *demo) transport(name string) (*kafka.Transport, error) {
	transport, err := kafka.New(kafka.Options{Brokers: d.broker, ClientID: name})
	if err != nil {
		return nil, err
	}
	d.ends = append(d.ends, func() error { transport.Close(); return nil })
	return transport, nil
}

// startManager starts the manager on the global hub, and the agents.
func (d *demo) startManager(ctx context.Context) error {
	global := d.hubs[sourceHub]
	own, err := hubidentity.Ensure(ctx, global, global, hubidentity.Owner{Namespace: managerNamespace, Name: message.ManagerName})
	if err != nil {
		return err
	}
	transport, err := d.transport("manager")
	if err != nil {
		return err
	}
	mgr, err := manager.New(d.Plane.Config(), manager.Options{Scheme: global.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	r := &hubmanager.Reconciler{
		Client: global, Reader: global, Recorder: mgr.GetEventRecorder("godwit"), Clock: clock.RealClock{}, Transport: transport,
		Metrics: hubmanager.NewMetrics(global), Namespace: managerNamespace, Identity: own,
	}
	if err := r.SetupWithManager(mgr); err != nil {
		return err
	}
	d.run(ctx, "manager", mgr.Start)
	for name := range d.Contexts {
		if err := d.startAgent(ctx, name, agent.Options{Manager: own.Key()}); err != nil {
			return fmt.Errorf("start the agent of %s: %w", name, err)
		}
	}
	return nil
}

// startAgent starts the agent of a hub. Short intervals keep the demo short.
func (d *demo) startAgent(ctx context.Context, name string, o agent.Options) (err error) {
	c := d.hubs[name]
	if o.Identity, err = hubidentity.Ensure(ctx, c, c, hubidentity.Owner{Namespace: agentNamespace, Name: name}); err != nil {
		return err
	}
	transport, err := d.transport(name)
	if err != nil {
		return err
	}
	o.Client, o.Transport, o.Hub, o.Namespace, o.BootstrapNamespace = c, transport, name, agentNamespace, bootstrapNamespace
	o.Heartbeat, o.Poll, o.Quiet = time.Second, 200*time.Millisecond, time.Second
	d.run(ctx, "agent of "+name, agent.New(o).Run)
	return nil
}
