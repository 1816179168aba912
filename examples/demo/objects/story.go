package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"

	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// settle is shorter than the default. The text of [demo.migrate] has the reason.
const settle = "--settle=2s"

// Run shows the story and returns after it has removed everything. It returns an error if a
// claim does not hold.
func Run(ctx context.Context, o stage.Options) (err error) {
	d := &demo{Stage: stage.New(o, "Migrate objects of the Gateway API from "+oldVersion+".")}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Plane.Stop()) }()
	if err := stage.Run(ctx, d.install, d.upgrade, d.planWithPolicy, d.migrate, d.finish, d.prove, d.drop); err != nil {
		return err
	}
	return d.End(ctx, d.sum, "kubectl get httproutes -A", d.Program.CommandLine("crd", "plan"))
}

// begin reads the CRDs and starts the servers.
func (d *demo) begin(ctx context.Context) (err error) {
	d.Teller.Chapter("A local control plane")
	if d.before, err = releasedCRDs(ctx, before); err != nil {
		return err
	}
	if d.after, err = releasedCRDs(ctx, after); err != nil {
		return err
	}
	if err := d.Open(ctx); err != nil {
		return err
	}
	clients, err := clientset.NewForConfig(d.Plane.Config())
	if err != nil {
		return errors.Join(fmt.Errorf("connect to %s: %w", d.Plane.Config().Host, err), d.Plane.Stop())
	}
	d.crds = clients.ApiextensionsV1().CustomResourceDefinitions()
	return nil
}

// install installs the old release and creates its objects.
func (d *demo) install(ctx context.Context) (err error) {
	d.Teller.Chapter("The Gateway API " + before + " and its objects")
	d.Teller.Paragraph("Its CRDs serve v1 and %[1]s, and store %[1]s.", oldVersion)
	if err := controlplane.InstallCRDs(ctx, d.Plane.Config(), d.before...); err != nil {
		return err
	}
	if d.created, err = populate(ctx, d.Clients, d.Objects); err != nil {
		return err
	}
	var parts []string
	for _, plural := range plurals {
		d.total += d.created[plural]
		parts = append(parts, stage.Number(d.created[plural])+" "+plural)
	}
	d.Teller.Paragraph("%s in %d namespaces.", strings.Join(parts, ", "), len(teams))
	at, _, err := d.storedAt(ctx, oldVersion)
	if err != nil {
		return err
	}
	return stage.Claim(d.Teller, "objects in etcd at "+oldVersion, at, d.total)
}

// upgrade installs the release that stores the new version.
func (d *demo) upgrade(ctx context.Context) (err error) {
	d.Teller.Chapter("The upgrade to " + after)
	d.Teller.Paragraph("The new CRDs store %s. New writes use it. The objects in etcd stay at the version that they were\nwritten at, as etcd shows.",
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
	printed, err := d.verify(ctx, stage.ExitPending)
	if err != nil {
		return err
	}
	for _, plural := range plurals {
		counted := oldVersion + "=" + stage.Number(d.created[plural])
		if !strings.Contains(printed, counted) {
			return stage.Wrong("`crd verify` does not say %s of %s", counted, plural)
		}
	}
	return nil
}

// planWithPolicy creates a policy that denies one write, and plans.
func (d *demo) planWithPolicy(ctx context.Context) error {
	d.Teller.Chapter("A policy denies the write of one route")
	d.Teller.Paragraph("A ValidatingAdmissionPolicy, %s, denies every change of HTTPRoute %s.", policyName, frozen)
	if err := d.deny(ctx); err != nil {
		return err
	}
	d.Teller.Paragraph("The plan shows what to migrate. It only reads.")
	_, err := d.Program.Show(ctx, stage.ExitPending, "crd", "plan")
	return err
}

// migrate migrates all objects but the one whose write is denied.
func (d *demo) migrate(ctx context.Context) error {
	d.Teller.Chapter("The migration")
	d.Teller.Paragraph("By default, a run waits until 75 s after the change: other API servers may not know the change\n" +
		"yet, and may still write older requests. This demo has one API server and no other client:\n" +
		settle + " is enough. The API server still has to renew its lease.")
	printed, err := d.Program.Show(ctx, stage.ExitPartial, "crd", "run", "--all", settle, "--yes")
	if err != nil {
		return err
	}
	for _, name := range []string{frozen, policyName} {
		if !strings.Contains(printed, name) {
			return stage.Wrong("the report does not name %s", name)
		}
	}
	d.Teller.Paragraph("✓ the report names the route and the policy")
	at, _, err := d.storedAt(ctx, oldVersion)
	if err != nil {
		return err
	}
	if err := stage.Claim(d.Teller, "objects in etcd at "+oldVersion, at, 1); err != nil {
		return err
	}
	return d.claimTrimmed(ctx, map[string]string{
		"gatewayclasses": newVersion, "gateways": newVersion, "httproutes": oldVersion + "," + newVersion,
	})
}

// finish migrates the remaining object.
func (d *demo) finish(ctx context.Context) error {
	d.Teller.Chapter("The policy allows the write")
	d.Teller.Paragraph("The policy only audits now. The run resumes at its checkpoint. Its output is JSON, for a script.")
	if err := d.relax(ctx); err != nil {
		return err
	}
	revision, err := d.revision(ctx)
	if err != nil {
		return err
	}
	var reports struct {
		Items []struct{ Objects struct{ Migrated int } }
	}
	if err := d.Program.ShowJSON(ctx, &reports, stage.ExitOK, "crd", "run", crdName("httproutes"), settle, "--yes"); err != nil {
		return err
	}
	migrated := 0
	for _, r := range reports.Items {
		migrated += r.Objects.Migrated
	}
	if err := stage.Claim(d.Teller, "objects rewritten, as reported", migrated, 1); err != nil {
		return err
	}
	written, err := d.writtenSince(ctx, "httproutes", revision)
	if err != nil {
		return err
	}
	if err := stage.Claim(d.Teller, "objects rewritten, by etcd's revisions", written, 1); err != nil {
		return err
	}
	return d.claimTrimmed(ctx, map[string]string{"httproutes": newVersion})
}

// prove verifies the versions in etcd.
func (d *demo) prove(ctx context.Context) error {
	d.Teller.Chapter("The proof")
	_, err := d.verify(ctx, stage.ExitOK)
	return err
}

// drop removes the old version from the CRDs.
func (d *demo) drop(ctx context.Context) error {
	d.Teller.Chapter("The end of " + oldVersion)
	d.Teller.Paragraph("The demo removes it from spec.versions of the three CRDs. The API server accepts that because\nstoredVersions no longer contains it.")
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
	return stage.Claim(d.Teller, "objects that read as they did before", stage.Same(d.upgraded, objects), d.total)
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
		return stage.Wrong("of %d objects etcd has %d, %d of them at %s, and storedVersions is trimmed on %d CRDs",
			d.total, all, current, newVersion, trimmed)
	}
	d.Teller.Line("\ndemo: %d objects, %d at old versions, storedVersions trimmed on %d CRDs", all, all-current, trimmed)
	return nil
}

func (d *demo) verify(ctx context.Context, code int) (string, error) {
	return d.Program.Show(ctx, code, "crd", "verify", "--etcd-servers="+d.Plane.EtcdEndpoint())
}

func (d *demo) change(ctx context.Context, name string, change func(*apiextensionsv1.CustomResourceDefinition)) error {
	_, err := controlplane.UpdateCRD(ctx, d.Plane.Config(), name, change)
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
