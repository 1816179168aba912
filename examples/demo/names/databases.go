package names

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/externalname/ready"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/jobservice"
	"github.com/godwit-dev/godwit/test/jobservice/provider"
	programs "github.com/godwit-dev/godwit/test/program"
)

const (
	namespace = "shop"
	// legacyPrefix begins the names of the managed resources of the fleet.
	legacyPrefix = "legacy-"
	// observeEvery is how often the provider observes a database: a minute would be too long for a demo.
	observeEvery = time.Second
	// reconcilesPerSecond is enough for all databases at once.
	reconcilesPerSecond = 100
)

var databaseCRD = provider.Resource.GroupResource().String()

// demo is one run of the story.
type demo struct {
	stage.Stage
	jobprovider *stage.Program // as a user types it
	service     *jobservice.Process
	provider    *provider.Process
	client      jobservice.Client
	log         io.Closer
	// own counts the requests of the demo itself that change the service. The provider sent all other ones.
	own int
	// external counts the databases that the demo has created in the service.
	external int
	// before are the databases of the legacy fleet before the renaming, by name.
	before  map[string]database
	renamed int // names of the fleet
}

// database has the parts of a managed resource that the demo compares.
type database struct {
	annotations map[string]string
	identity    string // status.atProvider.id
}

// externalName returns the annotation with the external name.
func (d database) externalName() string { return d.annotations[ready.AnnotationExternalName] }

// startProvider starts the job service and its provider, as processes of their own.
func (d *demo) startProvider(ctx context.Context, path string) (err error) {
	crds, err := provider.CRDs()
	if err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, d.Plane.Config(), crds...); err != nil {
		return err
	}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := d.Clients.CoreV1().Namespaces().Create(ctx, shop, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	if d.service, err = jobservice.StartProgram(ctx, path); err != nil {
		return err
	}
	d.client = jobservice.Client{URL: d.service.URL}
	log, err := os.Create(filepath.Join(d.Plane.Dir(), "provider.log"))
	if err != nil {
		return err
	}
	d.log = log
	d.jobprovider = d.NewProgram(path)
	d.provider, err = provider.Start(provider.Options{
		Program: path, Kubeconfig: d.Kubeconfig(), Service: d.service.URL, Poll: observeEvery, Rate: reconcilesPerSecond, Log: log,
	})
	return err
}

// stop stops the provider, the service and the control plane.
func (d *demo) stop(ctx context.Context) error {
	var errs []error
	if d.provider != nil {
		errs = append(errs, d.provider.Stop(ctx))
	}
	if d.service != nil {
		errs = append(errs, d.service.Stop())
	}
	if d.log != nil {
		errs = append(errs, d.log.Close())
	}
	return errors.Join(append(errs, d.Plane.Stop())...)
}

// compileProvider compiles the program of the provider.
func compileProvider(ctx context.Context) (string, error) {
	path, err := programs.JobProvider(ctx)
	if err != nil {
		return "", fmt.Errorf("compile the provider of the job service: %w", err)
	}
	return path, nil
}

func (d *demo) databases() dynamic.ResourceInterface {
	return d.Objects.Resource(provider.Resource).Namespace(namespace)
}

// addExternal creates a database in the job service, as a user of the service does.
func (d *demo) addExternal(ctx context.Context, name string, size int) (id string, err error) {
	d.own++
	d.external++
	operation, err := d.client.Create(ctx, jobservice.Database{Name: name, Size: size})
	if err != nil {
		return "", fmt.Errorf("create database %s in the job service: %w", name, err)
	}
	o, err := d.client.Operation(ctx, operation)
	if err != nil || o.State != jobservice.Succeeded {
		return "", errors.Join(fmt.Errorf("create database %s in the job service: the operation is %q", name, o.State), err)
	}
	return o.Database, nil
}

// changes counts the requests of the provider that change the job service, and how many of them create a database.
func (d *demo) changes(ctx context.Context) (all, creations int, err error) {
	counts, err := d.service.Requests(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("count the requests of the job service: %w", err)
	}
	for pattern, n := range counts {
		if !strings.HasPrefix(pattern, "GET ") {
			all += n
		}
	}
	return all - d.own, counts["POST /databases"] - d.external, nil
}

// claimUnchanged claims that the provider has changed nothing in the job service.
func (d *demo) claimUnchanged(ctx context.Context) error {
	all, _, err := d.changes(ctx)
	if err != nil {
		return err
	}
	return stage.Claim(d.Teller, "requests of the provider that change the job service", all, 0)
}

// create creates managed resources.
func (d *demo) create(ctx context.Context, manifests []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), len(manifests))
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return stage.Wrong("read the manifests: %w", err)
		case o.Object == nil:
			continue
		}
		if _, err := d.databases().Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create database %s: %w", o.GetName(), err)
		}
	}
}

// await reads all managed resources until fits is true for each.
func (d *demo) await(ctx context.Context, what string, fits func(*unstructured.Unstructured) bool) error {
	return d.poll(ctx, what, func(ctx context.Context) (bool, error) {
		list, err := d.databases().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list databases: %w", err)
		}
		for i := range list.Items {
			if !fits(&list.Items[i]) {
				return false, nil
			}
		}
		return true, nil
	})
}

// awaitPass waits until the provider has observed each managed resource twice, because the first observation may have begun
// before the call.
func (d *demo) awaitPass(ctx context.Context) error {
	const pattern = "GET /databases/{id}"
	list, err := d.databases().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	counts, err := d.service.Requests(ctx)
	if err != nil {
		return err
	}
	enough := counts[pattern] + 2*len(list.Items)
	return d.poll(ctx, "observation", func(ctx context.Context) (bool, error) {
		counts, err := d.service.Requests(ctx)
		return counts[pattern] >= enough, err
	})
}

// poll calls done until it returns true or an error, or until the provider ends.
func (d *demo) poll(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	return stage.Await(ctx, what, func(ctx context.Context) (bool, error) {
		ended, err := done(ctx)
		if err == nil {
			err = d.provider.Err()
		}
		return ended, err
	})
}

// observed reports whether the provider has found the external resource.
func observed(o *unstructured.Unstructured) bool {
	return identity(o) != "" && o.GetAnnotations()[ready.AnnotationBoundName] != ""
}

func identity(o *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(o.Object, "status", "atProvider", "id")
	return id
}

// drift returns the message of the condition Drift. It is empty unless the condition is True.
func drift(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == ready.TypeDrift && c["status"] == "True" {
			return fmt.Sprint(c["message"])
		}
	}
	return ""
}

// fleet reads the managed resources of the legacy fleet, by name.
func (d *demo) fleet(ctx context.Context) (map[string]database, error) {
	list, err := d.databases().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	all := map[string]database{}
	for i := range list.Items {
		if o := &list.Items[i]; strings.HasPrefix(o.GetName(), legacyPrefix) {
			all[o.GetName()] = database{annotations: o.GetAnnotations(), identity: identity(o)}
		}
	}
	return all, nil
}
