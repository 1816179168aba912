package revisions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
)

// Run shows the story and returns after it has removed everything. It returns an error if a claim does not hold.
func Run(ctx context.Context, o stage.Options) (err error) {
	d := &demo{Stage: stage.New(o, "Upgrade the instance types in KubeVirt's ControllerRevisions from "+strings.Join(oldVersions, " and ")+".")}
	d.Teller.Chapter("A local control plane")
	if d.crds, err = cluster.CRDs(ctx); err != nil {
		return err
	}
	if err := d.Open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Plane.Stop()) }()
	if err := stage.Run(ctx, d.install, d.plan, d.run, d.decide, d.endRetention, d.drop); err != nil {
		return err
	}
	return d.End(ctx, d.sum, "kubectl get virtualmachines -A", d.Program.CommandLine("revision", "plan", "-o", "wide"))
}

// install installs KubeVirt's CRDs and creates the virtual machines.
func (d *demo) install(ctx context.Context) error {
	d.Teller.Chapter("The revisions that KubeVirt left since v0.56")
	d.Teller.Paragraph("ControllerRevisions have a copy of the instance type and the preference of each virtual machine, from\n" +
		"the time of its creation. KubeVirt v1.7 and later cannot read v1alpha1 and v1alpha2.")
	if err := controlplane.InstallCRDs(ctx, d.Plane.Config(), d.crds...); err != nil {
		return err
	}
	created, err := d.createRevisions(ctx)
	if err != nil {
		return err
	}
	for _, m := range machines {
		d.Teller.Paragraph("%-7s %s", m.name, m.since)
	}
	d.Teller.Paragraph("%-7s a clone of %s, which shares its revisions", twin, cloned)
	current, old, err := d.revisionsAt(ctx)
	if err != nil {
		return err
	}
	if err := stage.Claim(d.Teller, "revisions", current+old, created); err != nil {
		return err
	}
	d.resolved, err = d.claimReferences(ctx)
	return err
}

// claimReferences claims that every reference names an existing revision. It returns the
// number of references.
func (d *demo) claimReferences(ctx context.Context) (int, error) {
	resolved, dangling, err := d.references(ctx)
	if err != nil {
		return 0, err
	}
	return resolved, stage.Claim(d.Teller, "references to revisions that do not exist", dangling, 0)
}

func (d *demo) plan(ctx context.Context) error {
	d.Teller.Chapter("The plan")
	_, err := d.Program.Show(ctx, stage.ExitBlocked, "revision", "plan")
	return err
}

// run upgrades, and checks that the report names the revisions that it did not upgrade.
func (d *demo) run(ctx context.Context) error {
	d.Teller.Chapter("The upgrade")
	printed, err := d.Program.Show(ctx, stage.ExitPartial, "revision", "run", "--all-namespaces", "--yes")
	if err != nil {
		return err
	}
	for _, why := range []string{"VirtualMachine " + running + " is running and uses this revision", "spec.experimental"} {
		if !strings.Contains(printed, why) {
			return stage.Wrong("the report does not say %q", why)
		}
	}
	d.Teller.Mark("the report names the revisions that were not upgraded, and why")
	if _, err := d.claimReferences(ctx); err != nil {
		return err
	}
	d.Teller.Paragraph("The old revisions still exist, for a rollback:")
	_, err = d.Program.Show(ctx, stage.ExitBlocked, "revision", "status")
	return err
}

// decide stops the virtual machine, and upgrades the revision although the unknown field gets lost.
func (d *demo) decide(ctx context.Context) error {
	d.Teller.Chapter(running + " stops, and the unknown field is accepted")
	if err := d.shop.StopMachine(ctx, running); err != nil {
		return err
	}
	if _, err := d.Program.Show(ctx, stage.ExitPending, "revision", "run", "--all-namespaces", "--yes", "--loss-policy=Allow"); err != nil {
		return err
	}
	_, err := d.claimReferences(ctx)
	return err
}

// endRetention ends the retention before its time.
func (d *demo) endRetention(ctx context.Context) error {
	d.Teller.Chapter("An hour later")
	d.Teller.Paragraph("The demo does not wait for the retention of one hour: it sets back the annotation with the time since\nwhen each old revision is unreferenced.")
	revisions, err := d.Clients.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return stage.Wrong("list controllerrevisions: %w", err)
	}
	for _, r := range revisions.Items {
		if r.Annotations[decision.UnreferencedAnnotation] == "" {
			continue
		}
		if err := d.shop.SetUnreferenced(ctx, r.Name, time.Now().Add(-decision.DefaultRetention)); err != nil {
			return err
		}
	}
	if _, err := d.Program.Show(ctx, stage.ExitOK, "revision", "run", "--all-namespaces", "--yes"); err != nil {
		return err
	}
	resolved, err := d.claimReferences(ctx)
	if err != nil {
		return err
	}
	return stage.Claim(d.Teller, "references, as many as at the beginning", resolved, d.resolved)
}

// drop reads from a run which versions can be removed, and removes them from the CRDs.
func (d *demo) drop(ctx context.Context) error {
	d.Teller.Chapter("The end of " + strings.Join(oldVersions, " and "))
	var r struct{ DroppableVersions []string }
	if _, err := d.Program.Show(ctx, stage.ExitOK, "revision", "run", "--all-namespaces", "--yes"); err != nil {
		return err
	}
	if err := d.Program.Read(ctx, &r, stage.ExitOK, "revision", "run", "--all-namespaces", "--yes"); err != nil {
		return err
	}
	if err := stage.Claim(d.Teller, "droppable versions", strings.Join(r.DroppableVersions, ","), strings.Join(oldVersions, ",")); err != nil {
		return err
	}
	for _, resource := range (kubevirt.Family{}).Describe().Resources {
		_, err := controlplane.UpdateCRD(ctx, d.Plane.Config(), resource.String(), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return slices.Contains(oldVersions, v.Name)
			})
		})
		if err != nil {
			return err
		}
	}
	d.Teller.Paragraph("The demo removes them from the four CRDs.")
	_, err := d.Program.Show(ctx, stage.ExitOK, "revision", "plan")
	return err
}

// sum prints the last line. It counts its numbers again.
func (d *demo) sum(ctx context.Context) error {
	current, old, err := d.revisionsAt(ctx)
	if err != nil {
		return err
	}
	resolved, dangling, err := d.references(ctx)
	if err != nil {
		return err
	}
	if old > 0 || dangling > 0 {
		return stage.Wrong("%d revisions are at old versions, %d references are dangling", old, dangling)
	}
	d.Teller.Line("\ndemo: %d references to %d revisions, %d at old versions, %d lost", resolved, current, old, dangling)
	return nil
}
