package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// Options say how the demo is shown.
type Options struct {
	// Program is what a person types for godwit.
	Program string
	// Out receives the story. ErrOut, if it is a terminal, receives the progress
	// of the commands in it.
	Out, ErrOut io.Writer
	// Keep leaves the cluster running until the context ends.
	Keep bool
	// Kubeconfig is the file that Keep writes; empty means DefaultKubeconfig.
	Kubeconfig string
}

// demo is one performance.
type demo struct {
	teller      *teller
	program     *program
	before      []*apiextensionsv1.CustomResourceDefinition
	after       []*apiextensionsv1.CustomResourceDefinition
	plane       *controlplane.ControlPlane
	clients     kubernetes.Interface
	objects     dynamic.Interface
	definitions apiextensionsclient.CustomResourceDefinitionInterface
	freeze      freeze

	created  map[string]int    // objects by resource
	total    int               // of them
	upgraded map[string]string // every object as it was read after the upgrade
}

// Run plays the demo and returns when nothing of it is left. It returns an
// error as soon as something is not as the story says.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{teller: &teller{out: o.Out, began: time.Now()}}
	d.teller.line("Objects of the Gateway API leave %s. All this happens on your machine, and nothing of it stays.", oldVersion)
	if err := d.begin(ctx, o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.plane.Stop()) }()
	for _, chapter := range []func(context.Context) error{
		d.install, d.upgrade, d.meetTheFreeze, d.migrate, d.finish, d.prove, d.drop,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	if !o.Keep {
		return d.sum(ctx)
	}
	remove, err := d.keep(cmp.Or(o.Kubeconfig, DefaultKubeconfig))
	if err != nil {
		return err
	}
	return errors.Join(d.sum(ctx), await(ctx, remove))
}

// begin gets what the story needs: definitions, servers and clients.
func (d *demo) begin(ctx context.Context, o Options) (err error) {
	d.teller.chapter("A cluster of its own")
	if d.before, err = definitions(ctx, before); err != nil {
		return err
	}
	if d.after, err = definitions(ctx, after); err != nil {
		return err
	}
	if d.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return fmt.Errorf("start a control plane for the demo: %w", err)
	}
	if err := d.connect(o); err != nil {
		return errors.Join(err, d.plane.Stop())
	}
	return nil
}

func (d *demo) connect(o Options) error {
	config := d.plane.Config()
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the godwit program: %w", err)
	}
	d.program = &program{
		path: path, typed: o.Program, teller: d.teller, errOut: o.ErrOut,
		kubeconfig: filepath.Join(d.plane.Dir(), "kubeconfig"),
	}
	if err := controlplane.WriteKubeconfig(d.program.kubeconfig, config); err != nil {
		return err
	}
	if d.clients, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	if d.objects, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	definitions, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	d.definitions = definitions.ApiextensionsV1().CustomResourceDefinitions()
	d.freeze = freeze{clients: d.clients, objects: d.objects}
	version, err := d.clients.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", config.Host, err)
	}
	d.teller.say("Kubernetes %s at %s, etcd at %s", version.GitVersion, config.Host, d.plane.EtcdEndpoint())
	return nil
}
