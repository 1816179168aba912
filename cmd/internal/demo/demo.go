package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
)

// Options say how to show the demo.
type Options struct {
	// Program is what the user types for godwit.
	Program string
	// Out receives the story. ErrOut, if it is a terminal, receives the progress
	// of the commands in it.
	Out, ErrOut io.Writer
	// Keep leaves the cluster running until the context ends.
	Keep bool
	// Kubeconfig is the file that Keep writes; empty means DefaultKubeconfig.
	Kubeconfig string
}

// demo is one run of the demo of stored objects.
type demo struct {
	stage
	before []*apiextensionsv1.CustomResourceDefinition
	after  []*apiextensionsv1.CustomResourceDefinition
	crds   apiextensionsclient.CustomResourceDefinitionInterface
	freeze freeze

	created  map[string]int    // objects by resource
	total    int               // of them
	upgraded map[string]string // every object as it was read after the upgrade
}

// Run shows the demo and returns after it has removed everything. It returns an error if a
// claim does not hold.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{stage: stage{teller: &teller{out: o.Out, began: time.Now()}}}
	d.teller.line("Migrate objects of the Gateway API from %s. The demo runs on this machine only.", oldVersion)
	if err := d.begin(ctx, o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.plane.Stop()) }()
	for _, chapter := range []func(context.Context) error{
		d.install, d.upgrade, d.planWithPolicy, d.migrate, d.finish, d.prove, d.drop,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return d.end(ctx, o, d.sum, "kubectl get httproutes -A", d.program.typed+" crd plan")
}

// begin reads the CRDs and starts the servers.
func (d *demo) begin(ctx context.Context, o Options) (err error) {
	d.teller.chapter("A local control plane")
	if d.before, err = releasedCRDs(ctx, before); err != nil {
		return err
	}
	if d.after, err = releasedCRDs(ctx, after); err != nil {
		return err
	}
	if err := d.open(ctx, o); err != nil {
		return err
	}
	clients, err := clientset.NewForConfig(d.plane.Config())
	if err != nil {
		return errors.Join(fmt.Errorf("connect to %s: %w", d.plane.Config().Host, err), d.plane.Stop())
	}
	d.crds = clients.ApiextensionsV1().CustomResourceDefinitions()
	d.freeze = freeze{clients: d.clients, objects: d.objects}
	return nil
}
