package names

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/externalname/ready"
	"github.com/godwit-dev/godwit/test/jobservice"
	"github.com/godwit-dev/godwit/test/jobservice/provider"
)

// imported are the databases that exist before any managed resource, with their sizes. Another client changes drifting.
var imported = map[string]int{"carts": 5, drifting: 10}

const (
	drifting  = "orders"
	driftedTo = 20

	// legacyFleet is the number of managed resources with external names in upper case.
	legacyFleet = 12

	// canonicalName is a CEL expression for the external name that the provider writes now.
	canonicalName = "name.lowerAscii()"
)

// Run shows the story and returns after it has removed everything. It returns an error if a claim does not hold.
func Run(ctx context.Context, o stage.Options) (err error) {
	d := &demo{Stage: stage.New(o, "Import databases of a job service, and rename external names.")}
	d.Teller.Chapter("A local control plane, a job service, and its provider")
	path, err := compileProvider(ctx)
	if err != nil {
		return err
	}
	if err := d.Open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop(context.WithoutCancel(ctx))) }()
	if err := d.startProvider(ctx, path); err != nil {
		return err
	}
	d.Teller.Paragraph("The job service at %s makes databases, each with a GUID. Its provider is built on\n"+
		"externalname/crossplane and observes each database every %s.", d.service.URL, observeEvery)
	if err := stage.Run(ctx, d.importAll, d.compare, d.manage, d.createFleet, d.rename, d.rollBack); err != nil {
		return err
	}
	return d.End(ctx, d.sum, "kubectl get databases -n "+namespace, d.Program.CommandLine(d.plan()...))
}

// importAll imports what exists in the job service.
func (d *demo) importAll(ctx context.Context) error {
	d.Teller.Chapter("Databases that exist are imported")
	d.Teller.Paragraph("The provider prints a manifest for each database. It only observes.")
	for _, name := range slices.Sorted(maps.Keys(imported)) {
		if _, err := d.addExternal(ctx, name, imported[name]); err != nil {
			return err
		}
	}
	manifests, err := d.jobprovider.ShowForScript(ctx, stage.ExitOK, "export", "--service="+d.service.URL, "--namespace="+namespace)
	if err != nil {
		return err
	}
	d.Teller.Paragraph("The demo creates them, as `kubectl apply -f -` does.")
	if err := d.create(ctx, manifests); err != nil {
		return err
	}
	if err := d.await(ctx, "observation of the imports", observed); err != nil {
		return err
	}
	list, err := d.databases().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	if err := stage.Claim(d.Teller, "managed resources that show their database in status.atProvider", len(list.Items), len(imported)); err != nil {
		return err
	}
	return d.claimUnchanged(ctx)
}

// compare changes a database in the job service, and shows the difference in the status.
func (d *demo) compare(ctx context.Context) error {
	d.Teller.Chapter("Another client changes a database")
	d.Teller.Paragraph("A user of the job service changes the size of %s from %d to %d.", drifting, imported[drifting], driftedTo)
	o, err := d.databases().Get(ctx, drifting, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read database %s: %w", drifting, err)
	}
	d.own++
	if err := d.client.Update(ctx, identity(o), jobservice.Database{Name: drifting, Size: driftedTo}); err != nil {
		return fmt.Errorf("change database %s in the job service: %w", drifting, err)
	}
	differs := ""
	err = d.await(ctx, "condition Drift", func(o *unstructured.Unstructured) bool {
		if o.GetName() == drifting {
			differs = drift(o)
		}
		return o.GetName() != drifting || differs != ""
	})
	if err != nil {
		return err
	}
	if err := stage.Claim(d.Teller, "condition Drift of "+drifting, differs, fmt.Sprintf("size: observed %q, desired %q", fmt.Sprint(driftedTo), fmt.Sprint(imported[drifting]))); err != nil {
		return err
	}
	printed, err := d.Program.Show(ctx, stage.ExitPending, d.ready()...)
	if err != nil {
		return err
	}
	if !strings.Contains(printed, ready.Differs.Name) {
		return stage.Wrong("`externalname ready` does not say that %s differs", drifting)
	}
	return d.claimUnchanged(ctx)
}

// manage gives the provider full management of the imports, once no spec differs.
func (d *demo) manage(ctx context.Context) error {
	d.Teller.Chapter("The imports are managed")
	d.Teller.Paragraph("The demo writes the new size to the spec of %s. Then full management changes nothing.", drifting)
	if err := d.patch(ctx, drifting, fmt.Sprintf(`{"spec":{"forProvider":{"size":%d}}}`, driftedTo)); err != nil {
		return err
	}
	if err := d.await(ctx, "observation of the new spec", func(o *unstructured.Unstructured) bool { return ready.Decide(o).Ready }); err != nil {
		return err
	}
	if _, err := d.Program.Show(ctx, stage.ExitOK, d.ready()...); err != nil {
		return err
	}
	d.Teller.Paragraph("The demo runs the commands that `externalname ready` prints.")
	for name := range imported {
		if err := d.patch(ctx, name, ready.Patch); err != nil {
			return err
		}
	}
	if err := d.awaitPass(ctx); err != nil {
		return err
	}
	return d.claimUnchanged(ctx)
}

func (d *demo) patch(ctx context.Context, name, body string) error {
	if _, err := d.databases().Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch database %s: %w", name, err)
	}
	return nil
}

func (d *demo) ready() []string {
	return []string{"externalname", "ready", "--resource=" + databaseCRD}
}

func (d *demo) plan() []string {
	return []string{"externalname", "plan", "--resource=" + databaseCRD, "--name=" + canonicalName}
}

// createFleet creates managed resources as an earlier release of the provider left them.
func (d *demo) createFleet(ctx context.Context) (err error) {
	d.Teller.Chapter("A fleet with names of an earlier release")
	d.Teller.Paragraph("An earlier release of the provider wrote GUIDs in upper case. This one reads them, and writes lower case.")
	for i := range legacyFleet {
		name := fmt.Sprintf("%s%02d", legacyPrefix, i)
		id, err := d.addExternal(ctx, name, i)
		if err != nil {
			return err
		}
		manifest, err := json.Marshal(map[string]any{
			"apiVersion": provider.Resource.GroupVersion().String(), "kind": provider.Kind.Kind,
			"metadata": map[string]any{"name": name, "annotations": map[string]string{ready.AnnotationExternalName: strings.ToUpper(id)}},
			"spec":     map[string]any{"forProvider": map[string]any{"name": name, "size": i}},
		})
		if err != nil {
			return err
		}
		if err := d.create(ctx, manifest); err != nil {
			return err
		}
	}
	if err := d.await(ctx, "observation of the fleet", observed); err != nil {
		return err
	}
	if d.before, err = d.fleet(ctx); err != nil {
		return err
	}
	if err := stage.Claim(d.Teller, "managed resources with a name in upper case", count(d.before, d.legacy), legacyFleet); err != nil {
		return err
	}
	_, err = d.Program.Show(ctx, stage.ExitPending, d.plan()...)
	return err
}

// legacy, canonical, same and asBefore are the properties of a managed resource that the demo counts.
func (d *demo) legacy(_ string, now database) bool {
	return now.externalName() == strings.ToUpper(now.identity)
}

func (d *demo) canonical(_ string, now database) bool { return now.externalName() == now.identity }

func (d *demo) same(name string, now database) bool {
	return now.identity == d.before[name].identity
}

func (d *demo) asBefore(name string, now database) bool {
	return maps.Equal(now.annotations, d.before[name].annotations)
}

// count counts the managed resources that have a property.
func count(of map[string]database, has func(string, database) bool) (n int) {
	for name, one := range of {
		if has(name, one) {
			n++
		}
	}
	return n
}

// rename renames the fleet with a proof for each managed resource.
func (d *demo) rename(ctx context.Context) error {
	d.Teller.Chapter("The renaming")
	d.Teller.Paragraph("Each managed resource is paused, gets its new name, and is proven to show the same database.")
	_, err := d.Program.Show(ctx, stage.ExitOK, "externalname", "apply", "--resource="+databaseCRD, "--name="+canonicalName, "-n", namespace, "--yes")
	if err != nil {
		return err
	}
	now, err := d.fleet(ctx)
	if err != nil {
		return err
	}
	d.renamed = count(now, d.canonical)
	if err := stage.Claim(d.Teller, "managed resources with a name in lower case", d.renamed, legacyFleet); err != nil {
		return err
	}
	if err := stage.Claim(d.Teller, "identities in status.atProvider as before", count(now, d.same), legacyFleet); err != nil {
		return err
	}
	return d.claimUnchanged(ctx)
}

// rollBack restores the names.
func (d *demo) rollBack(ctx context.Context) error {
	d.Teller.Chapter("The rollback")
	_, err := d.Program.Show(ctx, stage.ExitOK, "externalname", "rollback", "--resource="+databaseCRD, "-n", namespace, "--yes")
	if err != nil {
		return err
	}
	now, err := d.fleet(ctx)
	if err != nil {
		return err
	}
	if err := stage.Claim(d.Teller, "managed resources with the annotations from before, byte for byte", count(now, d.asBefore), legacyFleet); err != nil {
		return err
	}
	return d.awaitPass(ctx)
}

// sum prints the last line. It counts its numbers again.
func (d *demo) sum(ctx context.Context) error {
	now, err := d.fleet(ctx)
	if err != nil {
		return err
	}
	all, creations, err := d.changes(ctx)
	if err != nil {
		return err
	}
	existing := 0
	for _, err := range d.client.All(ctx) {
		if err != nil {
			return fmt.Errorf("list the databases of the job service: %w", err)
		}
		existing++
	}
	same, restored := count(now, d.same), count(now, d.asBefore)
	if same != legacyFleet || restored != legacyFleet || all != 0 || creations != 0 || existing != d.external {
		return stage.Wrong("of %d managed resources %d have the identity and %d the annotations from before; the provider sent %d requests that change the job service, "+
			"%d of them creations; %d of %d databases exist", legacyFleet, same, restored, all, creations, existing, d.external)
	}
	d.Teller.Line("\ndemo: %d names renamed and %d rolled back byte for byte, %d identities unchanged, %d external creations, %d of %d databases exist",
		d.renamed, restored, same, creations, existing, d.external)
	return nil
}
