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

	"github.com/godwit-dev/godwit/cmd/internal/report/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
)

// exitBlocked is godwit's code for what somebody has to decide.
const exitBlocked = 3

// oldStashes are the versions that the story gets rid of.
var oldStashes = []string{"v1alpha1", "v1alpha2"}

// stashDemo is one performance of the story of stashed objects.
type stashDemo struct {
	stage
	definitions []*apiextensionsv1.CustomResourceDefinition
	resolved    int // places that named a revision, in the beginning
}

// RunRevisions plays the demo of stashed objects and returns when nothing of it is
// left. It returns an error as soon as something is not as the story says.
func RunRevisions(ctx context.Context, o Options) (err error) {
	d := &stashDemo{stage: stage{teller: &teller{out: o.Out, began: time.Now()}}}
	d.teller.line("KubeVirt's stashed instance types leave %s. All this happens on your machine, and nothing of it stays.",
		strings.Join(oldStashes, " and "))
	d.teller.chapter("A cluster of its own")
	if d.definitions, err = cluster.CRDs(ctx); err != nil {
		return err
	}
	if err := d.open(ctx, o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.plane.Stop()) }()
	for _, chapter := range []func(context.Context) error{
		d.install, d.plan, d.run, d.decide, d.outlast, d.drop,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return d.end(ctx, o, d.sum, "kubectl get virtualmachines -A", d.program.typed+" revision plan -o wide")
}

// install sets up the past.
func (d *stashDemo) install(ctx context.Context) error {
	d.teller.chapter("What KubeVirt left behind since v0.56")
	d.teller.say("Each virtual machine has copies of its instance type and preference, in ControllerRevisions, as they\n" +
		"were when it was made. Since v1.7, KubeVirt can't read v1alpha1 and v1alpha2 any more.")
	if err := controlplane.InstallCRDs(ctx, d.plane.Config(), d.definitions...); err != nil {
		return err
	}
	created, err := d.createStashes(ctx)
	if err != nil {
		return err
	}
	for _, m := range machines {
		d.teller.say("%-7s %s", m.name, m.since)
	}
	d.teller.say("%-7s a clone of %s, which shares its revisions", twin, shares)
	current, old, err := d.stashedAt(ctx)
	if err != nil {
		return err
	}
	if err := claim(d.teller, "revisions", current+old, created); err != nil {
		return err
	}
	d.resolved, err = d.claimReferences(ctx)
	return err
}

// claimReferences: none leads nowhere. It returns how many there are.
func (d *stashDemo) claimReferences(ctx context.Context) (int, error) {
	resolved, dangling, err := d.references(ctx)
	if err != nil {
		return 0, err
	}
	return resolved, claim(d.teller, "references that lead nowhere", dangling, 0)
}

func (d *stashDemo) plan(ctx context.Context) error {
	d.teller.chapter("What is there to do?")
	_, err := d.program.play(ctx, exitBlocked, "revision", "plan")
	return err
}

// run upgrades what can be upgraded, and shows what was held back.
func (d *stashDemo) run(ctx context.Context) error {
	d.teller.chapter("The upgrade")
	printed, err := d.program.play(ctx, exitPartial, "revision", "run", "--all-namespaces", "--yes")
	if err != nil {
		return err
	}
	for _, why := range []string{"VirtualMachine " + runs + " runs by it", "spec.experimental"} {
		if !strings.Contains(printed, why) {
			return wrong("the report does not say %q", why)
		}
	}
	d.teller.say("✓ the report says what was held back, and why")
	if _, err := d.claimReferences(ctx); err != nil {
		return err
	}
	d.teller.say("The old revisions are still there, to go back to:")
	_, err = d.program.play(ctx, exitBlocked, "revision", "status")
	return err
}

// decide removes what was in the way.
func (d *stashDemo) decide(ctx context.Context) error {
	d.teller.chapter(runs + " stops, and the unknown field is accepted")
	_, err := d.objects.Resource(virtualMachines).Namespace(stashNamespace).Patch(ctx, runs, types.MergePatchType,
		[]byte(`{"status":{"printableStatus":"Stopped","created":false,"ready":false}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		return wrong("stop virtual machine %s: %w", runs, err)
	}
	if _, err := d.program.play(ctx, exitPending, "revision", "run", "--all-namespaces", "--yes", "--loss-policy=Allow"); err != nil {
		return err
	}
	_, err = d.claimReferences(ctx)
	return err
}

// outlast ends the retention before its time.
func (d *stashDemo) outlast(ctx context.Context) error {
	d.teller.chapter("An hour later")
	d.teller.say("An hour is long for a demo: on each old revision, the note since when nobody refers to it is set back.")
	revisions, err := d.clients.AppsV1().ControllerRevisions(stashNamespace).List(ctx, metav1.ListOptions{})
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
		if _, err := d.clients.AppsV1().ControllerRevisions(stashNamespace).Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return wrong("set back the note on controllerrevision %s: %w", r.Name, err)
		}
	}
	if _, err := d.program.play(ctx, exitOK, "revision", "run", "--all-namespaces", "--yes"); err != nil {
		return err
	}
	resolved, err := d.claimReferences(ctx)
	if err != nil {
		return err
	}
	return claim(d.teller, "references, as many as in the beginning", resolved, d.resolved)
}

// drop asks for the proof, and does what it says can be done.
func (d *stashDemo) drop(ctx context.Context) error {
	d.teller.chapter("The end of " + strings.Join(oldStashes, " and "))
	printed, err := d.program.playForScript(ctx, exitOK, "revision", "run", "--all-namespaces", "--yes", "-o", "json")
	if err != nil {
		return err
	}
	var r revisionreport.RunReport
	if err := json.Unmarshal(printed, &r); err != nil {
		return wrong("read what `revision run -o json` printed: %w", err)
	}
	if err := claim(d.teller, "droppable versions", strings.Join(r.DroppableVersions, ","), strings.Join(oldStashes, ",")); err != nil {
		return err
	}
	for _, resource := range (kubevirt.Family{}).Describe().Resources {
		_, err := controlplane.UpdateCRD(ctx, d.plane.Config(), resource.String(), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return slices.Contains(oldStashes, v.Name)
			})
		})
		if err != nil {
			return err
		}
	}
	d.teller.say("They are removed from the four definitions.")
	_, err = d.program.play(ctx, exitOK, "revision", "plan")
	return err
}

// sum is the last line. Its numbers are counted anew.
func (d *stashDemo) sum(ctx context.Context) error {
	current, old, err := d.stashedAt(ctx)
	if err != nil {
		return err
	}
	resolved, dangling, err := d.references(ctx)
	if err != nil {
		return err
	}
	if old > 0 || dangling > 0 {
		return wrong("%d revisions are at old versions, %d references lead nowhere", old, dangling)
	}
	d.teller.line("\ndemo: %d references to %d revisions, %d at old versions, %d lost", resolved, current, old, dangling)
	return nil
}
