package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/ocm"
	"github.com/godwit-dev/godwit/test/kafka"
	"github.com/godwit-dev/godwit/test/program"
)

const (
	// managerNamespace and agentNamespace differ, since hub1 has the manager and an agent.
	managerNamespace = "godwit"
	agentNamespace   = "godwit-agent"
	// serviceAccount is that of the manager and of each agent, in their namespaces.
	serviceAccount = "godwit"
)

// installation is Godwit as users install it: a broker, the manager on the global hub, and an agent on each hub. The manager
// and the agents are processes with exactly their roles. hub1 is the global hub too, and both hubs are managed clusters of it.
type installation struct {
	fleet
	broker                  *kafka.Broker
	manager, source, target *daemon
	// global is the client of a user of the global hub.
	global client.Client
	// folder has the logs, the kubeconfigs and the program.
	folder string
}

// installed is the installation of all tests, and installedPlain that of hubs without the import controller.
var installed, installedPlain installation

var (
	startInstalled      = sync.OnceValue(func() error { return installed.start(context.Background(), shared) })
	startInstalledPlain = sync.OnceValue(func() error { return installedPlain.start(context.Background(), plains) })
)

func install(t *testing.T) *installation {
	t.Helper()
	startFleet(t)
	return mustInstall(t, &installed, startInstalled)
}

func installPlain(t *testing.T) *installation {
	t.Helper()
	startPlainFleet(t)
	return mustInstall(t, &installedPlain, startInstalledPlain)
}

func mustInstall(t *testing.T, in *installation, start func() error) *installation {
	t.Helper()
	err := start()
	if errors.Is(err, kafka.ErrMissing) && !kafka.Required() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func (in *installation) start(ctx context.Context, f fleet) (err error) {
	in.fleet = f
	if in.broker, err = kafka.Start(ctx, kafka.Options{}); err != nil {
		return err
	}
	if in.folder, err = os.MkdirTemp("", "godwit-e2e-hub-"); err != nil {
		return err
	}
	godwit, err := program.Godwit(ctx, in.folder)
	if err != nil {
		return err
	}
	if err := in.prepareHubs(ctx); err != nil {
		return err
	}
	if err := in.startManager(ctx, godwit); err != nil {
		return err
	}
	key, err := publicKey(ctx, in.hub1, managerNamespace)
	if err != nil {
		return err
	}
	for _, h := range []*ocm.Hub{in.hub1, in.hub2} {
		d, err := in.startAgent(ctx, godwit, h, key)
		if err != nil {
			return err
		}
		if h == in.hub1 {
			in.source = d
		} else {
			in.target = d
		}
		if err := in.enroll(ctx, godwit, h); err != nil {
			return err
		}
	}
	return nil
}

// enroll makes the agent of a hub known to the manager.
func (in *installation) enroll(ctx context.Context, godwit string, h *ocm.Hub) error {
	key, err := publicKey(ctx, h, agentNamespace)
	if err != nil {
		return err
	}
	global, err := in.writeContexts(in.folder)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, godwit, "cluster", "enroll", h.Name, "--key="+key, "--yes", "--kubeconfig="+global, "--context=global").CombinedOutput()
	if err != nil {
		return fmt.Errorf("enroll %s: %w\n%s", h.Name, err, out)
	}
	return nil
}

// stop ends the processes and the broker.
func (in *installation) stop() error {
	var errs []error
	for _, d := range []*daemon{in.manager, in.source, in.target} {
		if d != nil {
			errs = append(errs, d.stop())
		}
	}
	if in.broker != nil {
		errs = append(errs, in.broker.Stop())
	}
	if in.folder != "" {
		errs = append(errs, os.RemoveAll(in.folder))
	}
	return errors.Join(errs...)
}

// prepareHubs does what the chart and the user of a fleet do: the CRD, the namespaces, and the hubs as managed clusters of the
// global hub, each with its address.
func (in *installation) prepareHubs(ctx context.Context) error {
	crds, err := controlplane.ReadCRDs("../../../cmd/hub/api/v1alpha1/crd/*.yaml")
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, in.hub1.Config(), crds...); err != nil {
		return err
	}
	scheme := ocm.Scheme()
	if err := api.AddToScheme(scheme); err != nil {
		return err
	}
	if in.global, err = client.New(in.hub1.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, h := range []*ocm.Hub{in.hub1, in.hub2} {
		for _, namespace := range []string{managerNamespace, agentNamespace} {
			if err := h.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		if _, err := in.spoke.Import(ctx, in.hub1, h.Name); err != nil {
			return err
		}
		mc := &clusterv1.ManagedCluster{}
		if err := in.hub1.Client.Get(ctx, client.ObjectKey{Name: h.Name}, mc); err != nil {
			return err
		}
		before := mc.DeepCopy()
		mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: h.Config().Host, CABundle: h.Config().CAData}}
		if err := in.hub1.Client.Patch(ctx, mc, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

func (in *installation) startManager(ctx context.Context, godwit string) error {
	kubeconfig, err := in.authorize(ctx, godwit, in.hub1, managerNamespace, "--for=manager", "--controller=clusterMigration")
	if err != nil {
		return err
	}
	in.manager = in.newDaemon("manager", godwit, "manager", "--kubeconfig="+kubeconfig, "--controllers=clusterMigration", "--leader-elect-namespace="+managerNamespace)
	return in.manager.start()
}

func (in *installation) startAgent(ctx context.Context, godwit string, h *ocm.Hub, managerKey string) (*daemon, error) {
	kubeconfig, err := in.authorize(ctx, godwit, h, agentNamespace, "--for=hub-agent")
	if err != nil {
		return nil, err
	}
	d := in.newDaemon("agent-"+h.Name, godwit, "agent", "--kubeconfig="+kubeconfig, "--namespace="+agentNamespace, "--hub="+h.Name, "--manager-key="+managerKey)
	return d, d.start()
}

// newDaemon is a process of Godwit, which logs everything. It competes for no lease, which a killed one would keep.
func (in *installation) newDaemon(name, godwit string, args ...string) *daemon {
	return &daemon{name: name, program: godwit, log: filepath.Join(in.folder, name+".log"), args: append(args,
		"--kafka-brokers="+in.broker.Address(), "--kafka-plaintext", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect=false", "-vv")}
}

// authorize gives the ServiceAccount of a namespace the roles that `godwit rbac` prints, and returns the file of its kubeconfig.
func (in *installation) authorize(ctx context.Context, godwit string, h *ocm.Hub, namespace string, flags ...string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}}
	if err := h.Client.Create(ctx, account); err != nil {
		return "", err
	}
	roles, err := exec.CommandContext(ctx, godwit, append([]string{"rbac", "--serviceaccount=" + namespace + ":" + serviceAccount}, flags...)...).Output()
	if err != nil {
		return "", fmt.Errorf("godwit rbac %v: %w", flags, err)
	}
	for document := range strings.SplitSeq(string(roles), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil || o.Object == nil {
			return "", fmt.Errorf("read the roles of godwit rbac %v: %w", flags, err)
		}
		if err := h.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("create a role of godwit rbac %v: %w", flags, err)
		}
	}
	kubeconfig, err := h.IssueKubeconfig(ctx, namespace, serviceAccount, 24*time.Hour)
	if err != nil {
		return "", err
	}
	file := filepath.Join(in.folder, namespace+"-"+h.Name+".kubeconfig")
	return file, os.WriteFile(file, kubeconfig, 0o600)
}

// publicKey waits for the identity that a process makes at its first start, and returns its public key as a user does.
func publicKey(ctx context.Context, h *ocm.Hub, namespace string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		secret := &corev1.Secret{}
		err := h.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: identity.Secret}, secret)
		if err == nil {
			return string(secret.Data[identity.Public]), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the identity in namespace %s of %s: %w", namespace, h.Name, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
