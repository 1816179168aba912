package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	// objects is the number of objects of each kind.
	objects = 40
	// timeout bounds one example: it takes seconds to compile, and ten until the API server renews its lease.
	timeout = 2 * time.Minute
	// settle is shorter than the 75 s of production, because no other client writes here.
	settle = "2s"
)

// example is an operator of examples/, with its CRDs.
type example struct {
	name     string
	migrates string
	excluded string // another CRD of the group, which the operator does not migrate
	because  string // why it does not migrate that CRD
	observed string // the annotation of a complete migration
}

var examples = []example{
	{
		name: "embed-by-object", migrates: "backups.example.com", observed: "crd-migration.cluster.x-k8s.io/observed-generation",
		excluded: "restores.example.com", because: "main.go does not name its kind",
	},
	{
		name: "embed-by-label", migrates: "pipelines.ci.example.com", observed: "godwit.dev/observed-generation",
		excluded: "runs.ci.example.com", because: "it has no label",
	},
}

// play is a run of one example.
type play struct {
	example
	plane *controlplane.ControlPlane
	dir   string // of the example
	out   io.Writer
}

func newPlay(e example, plane *controlplane.ControlPlane, dir string, out io.Writer) *play {
	return &play{example: e, plane: plane, dir: filepath.Join(dir, e.name), out: out}
}

func (p *play) print(format string, args ...any) {
	fmt.Fprintf(p.out, "  "+format+"\n", args...)
}

// run runs all steps, and returns the first error.
func (p *play) run(ctx context.Context) (err error) {
	fmt.Fprintf(p.out, "\n%s\n", p.name)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	release, err := p.release()
	if err != nil {
		return err
	}
	if err := p.installOldRelease(ctx, release); err != nil {
		return err
	}
	if err := p.upgrade(ctx, release); err != nil {
		return err
	}
	o, err := p.startOperator(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.stop()) }()
	if err := p.awaitMigrated(ctx, o); err != nil {
		return err
	}
	if err := p.unserve(ctx, o); err != nil {
		return err
	}
	if err := o.stop(); err != nil {
		return err
	}
	p.print("the operator ended on SIGTERM, with exit code 0")
	return p.checkExcluded(ctx)
}

// release reads the example's CRDs.
func (p *play) release() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := os.ReadFile(filepath.Join(p.dir, "crd.yaml"))
	if err != nil {
		return nil, err
	}
	crds, err := controlplane.DecodeCRDs(text)
	if err != nil {
		return nil, fmt.Errorf("read crd.yaml: %w", err)
	}
	return crds, nil
}

// installOldRelease installs the CRDs with v1 only, and creates objects.
func (p *play) installOldRelease(ctx context.Context, release []*apiextensionsv1.CustomResourceDefinition) error {
	config := p.plane.Config()
	config.WarningHandler = rest.NoWarnings{} // v1 is deprecated
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, crd := range release {
		old := crd.DeepCopy()
		old.Spec.Versions = old.Spec.Versions[:1]
		old.Spec.Versions[0].Storage = true
		if err := controlplane.InstallCRDs(ctx, config, old); err != nil {
			return err
		}
		v1 := client.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: "v1", Resource: crd.Spec.Names.Plural})
		for i := range objects {
			o := &unstructured.Unstructured{}
			o.SetAPIVersion(crd.Spec.Group + "/v1")
			o.SetKind(crd.Spec.Names.Kind)
			o.SetName("o-" + strconv.Itoa(i))
			o.SetLabels(map[string]string{"of": "examples"}) // a field that managedFields have an owner for
			if _, err := v1.Namespace(metav1.NamespaceDefault).Create(ctx, o, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create an object of %s: %w", crd.Name, err)
			}
		}
		p.print("%s: %d objects at v1", crd.Name, objects)
	}
	return nil
}

// upgrade installs the new release.
func (p *play) upgrade(ctx context.Context, release []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range release {
		_, err := controlplane.UpdateCRD(ctx, p.plane.Config(), crd.Name, func(installed *apiextensionsv1.CustomResourceDefinition) {
			installed.Spec.Versions = crd.Spec.Versions
		})
		if err != nil {
			return err
		}
	}
	p.print("applied crd.yaml: v2 becomes the storage version")
	return nil
}

// awaitMigrated waits until storedVersions is trimmed, and checks the objects in etcd.
func (p *play) awaitMigrated(ctx context.Context, o *operator) error {
	err := o.await(ctx, "storedVersions of "+p.migrates+" to be trimmed", func() (bool, error) {
		crd, err := p.crd(ctx, p.migrates)
		return err == nil && strings.Join(crd.Status.StoredVersions, ",") == "v2", err
	})
	if err != nil {
		return err
	}
	return p.checkStored(ctx, p.migrates, "v2", "storedVersions is [v2]")
}

// unserve stops serving v1, as the next release does, and waits until managedFields do not name it.
func (p *play) unserve(ctx context.Context, o *operator) error {
	crd, err := controlplane.UpdateCRD(ctx, p.plane.Config(), p.migrates, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Served = false
	})
	if err != nil {
		return err
	}
	p.print("stopped serving v1 of %s", p.migrates)
	err = o.await(ctx, "managedFields to be cleaned", func() (bool, error) {
		crd, err := p.crd(ctx, p.migrates)
		return err == nil && crd.Annotations[p.observed] == strconv.FormatInt(crd.Generation, 10), err
	})
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(p.plane.Config())
	if err != nil {
		return err
	}
	all, err := client.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: "v2", Resource: crd.Spec.Names.Plural}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, object := range all.Items {
		versions := sets.New[string]()
		for _, entry := range object.GetManagedFields() {
			versions.Insert(entry.APIVersion)
		}
		if !versions.Equal(sets.New(crd.Spec.Group + "/v2")) {
			return fmt.Errorf("managedFields of %s name %v, want v2", object.GetName(), sets.List(versions))
		}
	}
	p.print("managedFields of %d objects name v2 only: v1 can be removed", len(all.Items))
	return nil
}

// checkExcluded checks that the operator did not migrate the excluded CRD.
func (p *play) checkExcluded(ctx context.Context) error {
	crd, err := p.crd(ctx, p.excluded)
	if err != nil {
		return err
	}
	if stored := strings.Join(crd.Status.StoredVersions, ","); stored != "v1,v2" {
		return fmt.Errorf("storedVersions of %s is %s, want v1,v2, because %s", p.excluded, stored, p.because)
	}
	return p.checkStored(ctx, p.excluded, "v1", p.because)
}

func (p *play) checkStored(ctx context.Context, name, version, why string) error {
	plural, group, _ := strings.Cut(name, ".")
	counts, err := p.plane.CountStored(ctx, group, plural)
	if err != nil {
		return err
	}
	if n := counts[group+"/"+version]; n != objects || len(counts) != 1 {
		return fmt.Errorf("etcd holds %v of %s, want %d at %s", counts, name, objects, version)
	}
	p.print("%s: etcd holds all %d objects at %s; %s", name, objects, version, why)
	return nil
}

func (p *play) crd(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	clients, err := clientset.NewForConfig(p.plane.Config())
	if err != nil {
		return nil, err
	}
	return clients.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
}
