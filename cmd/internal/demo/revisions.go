package demo

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
)

// exitBlocked is the exit code of godwit if the user must decide.
const exitBlocked = 3

// RunRevisions shows the demo of ControllerRevisions and returns after it has removed
// everything. It returns an error if a claim does not hold.
func RunRevisions(ctx context.Context, o Options) (err error) {
	d := &revisionDemo{stage: stage{teller: &teller{out: o.Out, began: time.Now()}}}
	d.teller.line("Upgrade the instance types in KubeVirt's ControllerRevisions from %s. The demo runs on this machine only.",
		strings.Join(oldRevisionVersions, " and "))
	d.teller.chapter("A local control plane")
	if d.crds, err = cluster.CRDs(ctx); err != nil {
		return err
	}
	if err := d.open(ctx, o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.plane.Stop()) }()
	for _, chapter := range []func(context.Context) error{
		d.install, d.plan, d.run, d.decide, d.endRetention, d.drop,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return d.end(ctx, o, d.sum, "kubectl get virtualmachines -A", d.program.typed+" revision plan -o wide")
}

// install installs KubeVirt's CRDs and creates the virtual machines.
func (d *revisionDemo) install(ctx context.Context) error {
	d.teller.chapter("The revisions that KubeVirt left since v0.56")
	d.teller.say("ControllerRevisions have a copy of the instance type and the preference of each virtual machine, from\n" +
		"the time of its creation. KubeVirt v1.7 and later cannot read v1alpha1 and v1alpha2.")
	if err := controlplane.InstallCRDs(ctx, d.plane.Config(), d.crds...); err != nil {
		return err
	}
	created, err := d.createRevisions(ctx)
	if err != nil {
		return err
	}
	for _, m := range machines {
		d.teller.say("%-7s %s", m.name, m.since)
	}
	d.teller.say("%-7s a clone of %s, which shares its revisions", twin, shares)
	current, old, err := d.revisionsAt(ctx)
	if err != nil {
		return err
	}
	if err := claim(d.teller, "revisions", current+old, created); err != nil {
		return err
	}
	d.resolved, err = d.claimReferences(ctx)
	return err
}

// claimReferences claims that every reference names an existing revision. It returns the
// number of references.
func (d *revisionDemo) claimReferences(ctx context.Context) (int, error) {
	resolved, dangling, err := d.references(ctx)
	if err != nil {
		return 0, err
	}
	return resolved, claim(d.teller, "references to revisions that do not exist", dangling, 0)
}

func (d *revisionDemo) plan(ctx context.Context) error {
	d.teller.chapter("The plan")
	_, err := d.program.show(ctx, exitBlocked, "revision", "plan")
	return err
}

// run upgrades, and checks that the report names the revisions that it did not upgrade.
func (d *revisionDemo) run(ctx context.Context) error {
	d.teller.chapter("The upgrade")
	printed, err := d.program.show(ctx, exitPartial, "revision", "run", "--all-namespaces", "--yes")
	if err != nil {
		return err
	}
	for _, why := range []string{"VirtualMachine " + runs + " is running and uses this revision", "spec.experimental"} {
		if !strings.Contains(printed, why) {
			return wrong("the report does not say %q", why)
		}
	}
	d.teller.say("✓ the report names the revisions that were not upgraded, and why")
	if _, err := d.claimReferences(ctx); err != nil {
		return err
	}
	d.teller.say("The old revisions still exist, for a rollback:")
	_, err = d.program.show(ctx, exitBlocked, "revision", "status")
	return err
}

// decide stops the virtual machine and accepts the unknown field.
func (d *revisionDemo) decide(ctx context.Context) error {
	d.teller.chapter(runs + " stops, and the unknown field is accepted")
	_, err := d.objects.Resource(virtualMachines).Namespace(revisionNamespace).Patch(ctx, runs, types.MergePatchType,
		[]byte(`{"status":{"printableStatus":"Stopped","created":false,"ready":false}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		return wrong("stop virtual machine %s: %w", runs, err)
	}
	if _, err := d.program.show(ctx, exitPending, "revision", "run", "--all-namespaces", "--yes", "--loss-policy=Allow"); err != nil {
		return err
	}
	_, err = d.claimReferences(ctx)
	return err
}

// endRetention ends the retention before its time.
func (d *revisionDemo) endRetention(ctx context.Context) error {
	d.teller.chapter("An hour later")
	d.teller.say("The demo does not wait for the retention of one hour: it sets back the annotation with the time since\nwhen each old revision is unreferenced.")
	revisions, err := d.clients.AppsV1().ControllerRevisions(revisionNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return wrong("list controllerrevisions: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		revision.UnreferencedAnnotation: time.Now().Add(-revision.DefaultRetention).UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		return err
	}
	for _, r := range revisions.Items {
		if r.Annotations[revision.UnreferencedAnnotation] == "" {
			continue
		}
		if _, err := d.clients.AppsV1().ControllerRevisions(revisionNamespace).Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return wrong("set back the annotation of controllerrevision %s: %w", r.Name, err)
		}
	}
	if _, err := d.program.show(ctx, exitOK, "revision", "run", "--all-namespaces", "--yes"); err != nil {
		return err
	}
	resolved, err := d.claimReferences(ctx)
	if err != nil {
		return err
	}
	return claim(d.teller, "references, as many as at the beginning", resolved, d.resolved)
}

// drop asks which versions can be dropped, and drops them.
func (d *revisionDemo) drop(ctx context.Context) error {
	d.teller.chapter("The end of " + strings.Join(oldRevisionVersions, " and "))
	printed, err := d.program.showForScript(ctx, exitOK, "revision", "run", "--all-namespaces", "--yes", "-o", "json")
	if err != nil {
		return err
	}
	var r revisionreport.RunReport
	if err := json.Unmarshal(printed, &r); err != nil {
		return wrong("read what `revision run -o json` printed: %w", err)
	}
	if err := claim(d.teller, "droppable versions", strings.Join(r.DroppableVersions, ","), strings.Join(oldRevisionVersions, ",")); err != nil {
		return err
	}
	for _, resource := range (kubevirt.Family{}).Describe().Resources {
		_, err := controlplane.UpdateCRD(ctx, d.plane.Config(), resource.String(), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return slices.Contains(oldRevisionVersions, v.Name)
			})
		})
		if err != nil {
			return err
		}
	}
	d.teller.say("The demo removes them from the four CRDs.")
	_, err = d.program.show(ctx, exitOK, "revision", "plan")
	return err
}

// sum prints the last line. It counts its numbers again.
func (d *revisionDemo) sum(ctx context.Context) error {
	current, old, err := d.revisionsAt(ctx)
	if err != nil {
		return err
	}
	resolved, dangling, err := d.references(ctx)
	if err != nil {
		return err
	}
	if old > 0 || dangling > 0 {
		return wrong("%d revisions are at old versions, %d references are dangling", old, dangling)
	}
	d.teller.line("\ndemo: %d references to %d revisions, %d at old versions, %d lost", resolved, current, old, dangling)
	return nil
}
