package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// settle is shorter than the default. The text of [demo.migrate] has the reason.
const settle = "--settle=2s"

// refused is what the API server says of a CRD without a version that objects may be stored at.
const refused = "must remain in spec.versions until a storage migration"

// Run shows the story and returns after it has removed everything. It returns an error if a
// claim does not hold.
func Run(ctx context.Context, o stage.Options) (err error) {
	d := &demo{Stage: stage.New(o, "Migrate objects of the Gateway API from "+oldVersion+".")}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Plane.Stop()) }()
	if err := stage.Run(ctx, d.install, d.refuse, d.upgrade, d.planWithPolicy, d.migrate, d.finish, d.prove, d.drop); err != nil {
		return err
	}
	return d.End(ctx, d.sum, "kubectl get httproutes -A", d.Program.CommandLine("crd", "plan"))
}

// begin reads the CRDs and starts the servers.
func (d *demo) begin(ctx context.Context) (err error) {
	if d.before, err = releasedCRDs(ctx, before); err != nil {
		return err
	}
	if d.after, err = releasedCRDs(ctx, after); err != nil {
		return err
	}
	if err := d.Open(ctx); err != nil {
		return err
	}
	return d.connect()
}

// connect finds kubectl, and connects to the CRDs.
func (d *demo) connect() error {
	clients, err := clientset.NewForConfig(d.Plane.Config())
	if err != nil {
		return errors.Join(fmt.Errorf("connect to %s: %w", d.Plane.Config().Host, err), d.Plane.Stop())
	}
	d.crds = clients.ApiextensionsV1().CustomResourceDefinitions()
	path, err := controlplane.Kubectl()
	if err != nil {
		return errors.Join(err, d.Plane.Stop())
	}
	d.kubectl = d.NewProgram(path)
	d.kubectl.NoBars = true
	return nil
}

// install installs the old release, creates its objects, and installs the release that stores the new version.
func (d *demo) install(ctx context.Context) (err error) {
	if err := controlplane.InstallCRDs(ctx, d.Plane.Config(), d.before...); err != nil {
		return err
	}
	d.Teller.Paragraph("Gateway API %s stores %s:", before, oldVersion)
	if d.created, err = populate(ctx, d.Clients, d.Objects); err != nil {
		return err
	}
	var parts []string
	for _, plural := range plurals {
		d.total += d.created[plural]
		parts = append(parts, stage.Number(d.created[plural])+" "+plural)
	}
	d.Teller.Paragraph("%s in %d namespaces.", strings.Join(parts, ", "), len(teams))
	d.Teller.Paragraph("Gateway API %s is installed. It stores %s.", after, newVersion)
	for _, next := range d.after {
		if err := d.change(ctx, next.Name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec = next.Spec
			maps.Copy(crd.Annotations, next.Annotations)
		}); err != nil {
			return err
		}
	}
	d.upgraded, err = d.read(ctx)
	return err
}

// refuse tries to remove the old version.
func (d *demo) refuse(ctx context.Context) error {
	d.Teller.Chapter("The CRD without " + oldVersion + " is refused")
	for _, next := range d.after {
		without := next.DeepCopy()
		removeOld(without)
		without.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
		without.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		text, err := yaml.Marshal(without)
		if err == nil {
			err = os.WriteFile(filepath.Join(d.Plane.Dir(), fileOf(next.Name)), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	printed, err := d.kubectl.Show(ctx, stage.ExitPending, "replace", "-f", fileOf(crdName("httproutes")))
	if err != nil {
		return err
	}
	if !strings.Contains(printed, refused) {
		return stage.Wrong("the API server does not refuse the CRD: %s", printed)
	}
	return nil
}

// fileOf is the file of the CRD without the old version.
func fileOf(crd string) string {
	plural, _, _ := strings.Cut(crd, ".")
	return plural + ".yaml"
}

func removeOld(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == oldVersion
	})
}

// upgrade shows what the upgrade has left in etcd.
func (d *demo) upgrade(ctx context.Context) error {
	d.Teller.Chapter("What is in etcd")
	d.Teller.Paragraph("New writes use %s. The objects stay at the version that they were written at.", newVersion)
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
	d.Teller.Paragraph("The plan shows what to migrate. It changes nothing.")
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
	d.Teller.Mark("the report names the route and the policy")
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
	d.Teller.Paragraph("The policy only audits now. The same command resumes at the checkpoint.")
	if err := d.relax(ctx); err != nil {
		return err
	}
	revision, err := d.revision(ctx)
	if err != nil {
		return err
	}
	printed, err := d.Program.Show(ctx, stage.ExitOK, "crd", "run", crdName("httproutes"), settle, "--yes")
	if err != nil {
		return err
	}
	if !oneMigrated.MatchString(printed) {
		return stage.Wrong("the report does not say that one object was migrated")
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

// oneMigrated finds the row of a CRD of which one object was rewritten: name, result, storage version, objects, migrated.
var oneMigrated = regexp.MustCompile(`(?m)^httproutes\S+ +✓ Succeeded +` + newVersion + ` +[0-9,]+ +1 `)

// prove verifies the versions in etcd.
func (d *demo) prove(ctx context.Context) error {
	d.Teller.Chapter("The proof")
	_, err := d.verify(ctx, stage.ExitOK)
	return err
}

// drop removes the old version from the CRDs.
func (d *demo) drop(ctx context.Context) error {
	d.Teller.Chapter("The end of " + oldVersion)
	d.Teller.Paragraph("The command that was refused passes now, since storedVersions no longer contains it.")
	for _, plural := range []string{"httproutes", "gatewayclasses", "gateways"} {
		if _, err := d.kubectl.Show(ctx, stage.ExitOK, "replace", "-f", fileOf(crdName(plural))); err != nil {
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
