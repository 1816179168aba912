package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// settle is short. The chapter about the migration says why it may be.
const settle = "--settle=2s"

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

// Exit codes of godwit that the demo expects.
const (
	exitOK      = 0
	exitPending = 1
	exitPartial = 4
)

// install installs the old release and creates its objects.
func (d *demo) install(ctx context.Context) (err error) {
	d.teller.chapter("The Gateway API " + before + " and its objects")
	d.teller.say("Its CRDs serve v1 and %[1]s, and store %[1]s.", oldVersion)
	if err := controlplane.InstallCRDs(ctx, d.plane.Config(), d.before...); err != nil {
		return err
	}
	if d.created, err = populate(ctx, d.clients, d.objects); err != nil {
		return err
	}
	var parts []string
	for _, plural := range plurals {
		d.total += d.created[plural]
		parts = append(parts, render.Number(int64(d.created[plural]))+" "+plural)
	}
	d.teller.say("%s in %d namespaces.", strings.Join(parts, ", "), len(teams))
	at, _, err := d.storedAt(ctx, oldVersion)
	if err != nil {
		return err
	}
	return claim(d.teller, "objects in etcd at "+oldVersion, at, d.total)
}

// upgrade installs the release that stores the new version.
func (d *demo) upgrade(ctx context.Context) (err error) {
	d.teller.chapter("The upgrade to " + after)
	d.teller.say("The new CRDs store %s. New writes use it. The objects in etcd stay at the version that they were\nwritten at, as etcd shows.",
		newVersion)
	for _, next := range d.after {
		if err := d.change(ctx, next.Name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec = next.Spec
			maps.Copy(crd.Annotations, next.Annotations)
		}); err != nil {
			return err
		}
	}
	if d.upgraded, err = d.read(ctx); err != nil {
		return err
	}
	printed, err := d.verify(ctx, exitPending)
	if err != nil {
		return err
	}
	for _, plural := range plurals {
		counted := oldVersion + "=" + render.Number(int64(d.created[plural]))
		if !strings.Contains(printed, counted) {
			return wrong("`crd verify` does not say %s of %s", counted, plural)
		}
	}
	return nil
}

// planWithPolicy creates a policy that denies one write, and plans.
func (d *demo) planWithPolicy(ctx context.Context) error {
	d.teller.chapter("A policy denies the write of one route")
	d.teller.say("A ValidatingAdmissionPolicy, %s, denies every change of HTTPRoute %s.", policyName, frozen)
	if err := d.freeze.begin(ctx); err != nil {
		return err
	}
	d.teller.say("The plan shows what to migrate. It only reads.")
	_, err := d.program.show(ctx, exitPending, "crd", "plan")
	return err
}

// migrate migrates all objects but the one whose write is denied.
func (d *demo) migrate(ctx context.Context) error {
	d.teller.chapter("The migration")
	d.teller.say("By default, a run waits until 75 s after the change: other API servers may not know the change\n" +
		"yet, and may still write older requests. This demo has one API server and no other client:\n" +
		settle + " is enough. The API server still has to renew its lease.")
	printed, err := d.program.show(ctx, exitPartial, "crd", "run", "--all", settle, "--yes")
	if err != nil {
		return err
	}
	for _, name := range []string{frozen, policyName} {
		if !strings.Contains(printed, name) {
			return wrong("the report does not name %s", name)
		}
	}
	d.teller.say("✓ the report names the route and the policy")
	at, _, err := d.storedAt(ctx, oldVersion)
	if err != nil {
		return err
	}
	if err := claim(d.teller, "objects in etcd at "+oldVersion, at, 1); err != nil {
		return err
	}
	return d.claimTrimmed(ctx, map[string]string{
		"gatewayclasses": newVersion, "gateways": newVersion, "httproutes": oldVersion + "," + newVersion,
	})
}

// finish migrates the remaining object.
func (d *demo) finish(ctx context.Context) error {
	d.teller.chapter("The policy allows the write")
	d.teller.say("The policy only audits now. The run resumes at its checkpoint. Its output is JSON, for a script.")
	if err := d.freeze.relax(ctx); err != nil {
		return err
	}
	revision, err := d.revision(ctx)
	if err != nil {
		return err
	}
	printed, err := d.program.showForScript(ctx, exitOK, "crd", "run", crdName("httproutes"), settle, "--yes", "-o", "json")
	if err != nil {
		return err
	}
	var reports render.List[crdreport.Run]
	if err := json.Unmarshal(printed, &reports); err != nil {
		return wrong("read what `crd run -o json` printed: %w", err)
	}
	var migrated int64
	for _, r := range reports.Items {
		migrated += r.Objects.Migrated
	}
	if err := claim(d.teller, "objects rewritten, as reported", migrated, 1); err != nil {
		return err
	}
	written, err := d.writtenSince(ctx, "httproutes", revision)
	if err != nil {
		return err
	}
	if err := claim(d.teller, "objects rewritten, by etcd's revisions", written, 1); err != nil {
		return err
	}
	return d.claimTrimmed(ctx, map[string]string{"httproutes": newVersion})
}

// prove verifies the versions in etcd.
func (d *demo) prove(ctx context.Context) error {
	d.teller.chapter("The proof")
	_, err := d.verify(ctx, exitOK)
	return err
}

// drop removes the old version from the CRDs.
func (d *demo) drop(ctx context.Context) error {
	d.teller.chapter("The end of " + oldVersion)
	d.teller.say("The demo removes it from spec.versions of the three CRDs. The API server accepts that because\nstoredVersions no longer contains it.")
	for _, plural := range plurals {
		if err := d.change(ctx, crdName(plural), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return v.Name == oldVersion
			})
		}); err != nil {
			return err
		}
	}
	objects, err := d.read(ctx)
	if err != nil {
		return err
	}
	return claim(d.teller, "objects that read as they did before", same(d.upgraded, objects), d.total)
}

// sum prints the last line. It counts its numbers again.
func (d *demo) sum(ctx context.Context) error {
	current, all, err := d.storedAt(ctx, newVersion)
	if err != nil {
		return err
	}
	trimmed := 0
	for _, plural := range plurals {
		stored, err := d.storedVersions(ctx, plural)
		if err != nil {
			return err
		}
		if stored == newVersion {
			trimmed++
		}
	}
	if all != d.total || current != all || trimmed != len(plurals) {
		return wrong("of %d objects etcd has %d, %d of them at %s, and storedVersions is trimmed on %d CRDs",
			d.total, all, current, newVersion, trimmed)
	}
	d.teller.line("\ndemo: %d objects, %d at old versions, storedVersions trimmed on %d CRDs", all, all-current, trimmed)
	return nil
}

func (d *demo) verify(ctx context.Context, code int) (string, error) {
	return d.program.show(ctx, code, "crd", "verify", "--etcd-servers="+d.plane.EtcdEndpoint())
}

func (d *demo) change(ctx context.Context, name string, change func(*apiextensionsv1.CustomResourceDefinition)) error {
	_, err := controlplane.UpdateCRD(ctx, d.plane.Config(), name, change)
	return err
}

func (d *demo) claimTrimmed(ctx context.Context, want map[string]string) error {
	for _, plural := range slices.Sorted(maps.Keys(want)) {
		if err := d.claimStoredVersions(ctx, plural, want[plural]); err != nil {
			return err
		}
	}
	return nil
}
