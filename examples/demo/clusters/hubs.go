package clusters

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/test/controlplane"
	simulation "github.com/godwit-dev/godwit/test/hub"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

const (
	sourceHub = "hub1"
	targetHub = "hub2"

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
	hubs map[string]client.Client

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

// migrationCRD is the kind of the installed form. The demo leaves it out, as nothing of Godwit is on the hubs.
const migrationCRD = "managedclustermigrations.global-hub.open-cluster-management.io"

// installHub installs CRDs and namespaces, and the role by which clusters register.
func (d *demo) installHub(ctx context.Context, name string, config *rest.Config, scheme *runtime.Scheme) error {
	if err := simulation.InstallCRDs(ctx, config, migrationCRD); err != nil {
		return err
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	d.hubs[name] = c
	for _, namespace := range []string{bootstrapNamespace} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return err
		}
	}
	return c.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: registrationRole}})
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
