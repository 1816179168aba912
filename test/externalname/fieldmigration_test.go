package externalname_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/fieldmigration"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/walk"
)

// Each test migrates a field with one approach, of an object that exists and of a new one, twice.

// diskMigration is what release 2 of a kind wants: a region is required, and size has become disk.sizeGB.
var diskMigration = fieldmigration.Steps{Steps: []fieldmigration.Step{
	fieldmigration.Default("region", "eu1"),
	fieldmigration.Move("size", "disk.sizeGB"),
}}

// release is a kind with a schema of its own, of which a test changes the schema.
type release struct {
	*world

	kind string
}

func (r release) resource() schema.GroupVersionResource {
	return groupVersion.WithResource(strings.ToLower(r.kind) + "s")
}

func newRelease(t *testing.T, kind string, fields apiextensionsv1.JSONSchemaProps) release {
	t.Helper()
	r := release{world: newWorld(t), kind: kind}
	c := crd(kind, r.resource().Resource)
	setFields(c, fields)
	if err := controlplane.InstallCRDs(t.Context(), shared.Config(), c); err != nil {
		t.Fatal(err)
	}
	return r
}

// setFields makes fields the schema of spec.forProvider.
func setFields(c *apiextensionsv1.CustomResourceDefinition, fields apiextensionsv1.JSONSchemaProps) {
	root := c.Spec.Versions[0].Schema.OpenAPIV3Schema
	root.Required = []string{"spec"}
	root.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"forProvider"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{"forProvider": fields},
	}
}

// update changes the schema, and waits until the API server shows by a dry run that it has adopted it.
func (r release) update(fields apiextensionsv1.JSONSchemaProps, adopted func(*unstructured.Unstructured, error) bool, probe map[string]any) {
	r.t.Helper()
	_, err := controlplane.UpdateCRD(r.t.Context(), shared.Config(), r.resource().Resource+"."+groupVersion.Group,
		func(c *apiextensionsv1.CustomResourceDefinition) { setFields(c, fields) })
	if err != nil {
		r.t.Fatal(err)
	}
	r.awaitProbe("the schema", adopted, probe)
}

func (r release) awaitProbe(what string, fits func(*unstructured.Unstructured, error) bool, fields map[string]any) {
	r.t.Helper()
	r.await(what, func() string {
		o := r.object("probe", fields)
		err := r.client.Create(r.t.Context(), o, client.DryRunAll)
		if fits(o, err) {
			return ""
		}
		return fmt.Sprint(o.Object, err)
	})
}

func (r release) object(name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": fields}}}
	o.SetGroupVersionKind(groupVersion.WithKind(r.kind))
	o.SetName(name)
	o.SetNamespace(r.namespace)
	return o
}

func (r release) existing() fieldmigration.Existing {
	return fieldmigration.Existing{Resource: r.resource(), Namespace: r.namespace, Migration: diskMigration}
}

func (r release) run(e fieldmigration.Existing) walk.Report {
	r.t.Helper()
	report, err := e.Run(r.t.Context(), shared.Config())
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

func (r release) checkFields(o *unstructured.Unstructured, want map[string]any) {
	r.t.Helper()
	got, _, err := unstructured.NestedMap(get(r.world, o).Object, "spec", "forProvider")
	if err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("fields of %s (-want +got):\n%s", o.GetName(), diff)
	}
}

func field(kind string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: kind}
}

type properties = map[string]apiextensionsv1.JSONSchemaProps

var (
	release1 = apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"name"}, Properties: properties{
		"name": field("string"), "size": field("integer"),
	}}
	// release2 keeps size, so that a manifest which has it is not pruned before admission moves it.
	release2 = apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"name", "region"}, Properties: properties{
		"name": field("string"), "size": field("integer"), "region": field("string"),
		"disk": {Type: "object", Properties: properties{"sizeGB": field("integer")}},
	}}
)

// A webhook migrates, and a MutatingAdmissionPolicy does the same without one.
func TestFieldsAtAdmission(t *testing.T) {
	for kind, install := range map[string]func(release){
		"WebhookField": release.installWebhook,
		"PolicyField":  release.installPolicy,
	} {
		t.Run(kind, func(t *testing.T) {
			r := newRelease(t, kind, release1)
			old := r.object("old", map[string]any{"name": "a", "size": int64(7)})
			r.create(old)
			r.update(release2, func(_ *unstructured.Unstructured, err error) bool { return err != nil }, map[string]any{"name": "a"})

			report := r.run(r.existing())
			if f := report.Failures; len(f) != 1 || f[0].Reason != fieldmigration.ReasonNotMigrated {
				t.Errorf("without admission: %+v, want one failure for %s", report, fieldmigration.ReasonNotMigrated)
			}
			install(r)
			r.awaitProbe("admission", func(_ *unstructured.Unstructured, err error) bool { return err == nil }, map[string]any{"name": "a"})
			migrated := map[string]any{"name": "a", "region": "eu1", "disk": map[string]any{"sizeGB": int64(7)}}

			// A client of release 1 creates an object, and applies it again.
			made := r.object("new", map[string]any{"name": "a", "size": int64(7)})
			r.create(made)
			r.checkFields(made, migrated)
			version := made.GetResourceVersion()
			r.patch(made, `{"spec":{"forProvider":{"size":7}}}`)
			r.checkFields(made, migrated)
			if got := made.GetResourceVersion(); got != version {
				t.Errorf("the same manifest, applied again, has changed the object: %s, then %s", version, got)
			}

			version = get(r.world, old).GetResourceVersion()
			dry := r.existing()
			dry.DryRun = true
			if got, want := r.run(dry).Counts, (godwit.Counts{Migrated: 1, Skipped: 1}); got != want {
				t.Errorf("dry run: %+v, want %+v", got, want)
			}
			if got := get(r.world, old).GetResourceVersion(); got != version {
				t.Error("the dry run has written")
			}
			if got, want := r.run(r.existing()).Counts, (godwit.Counts{Migrated: 1, Skipped: 1}); got != want {
				t.Errorf("existing objects: %+v, want %+v", got, want)
			}
			r.checkFields(old, migrated)
			version = old.GetResourceVersion()
			if got, want := r.run(r.existing()).Counts, (godwit.Counts{Skipped: 2}); got != want {
				t.Errorf("existing objects, again: %+v, want %+v", got, want)
			}
			r.patch(old, `{}`)
			if got := old.GetResourceVersion(); got != version {
				t.Error("an empty patch has changed a migrated object")
			}
		})
	}
}

func (r release) installWebhook() {
	r.t.Helper()
	server := httptest.NewTLSServer(fieldmigration.Webhook(diskMigration))
	r.t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	none, again := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.IfNeededReinvocationPolicy
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(r.kind)},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:         "fill." + r.resource().Resource + "." + groupVersion.Group,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{groupVersion.Group}, APIVersions: []string{groupVersion.Version}, Resources: []string{r.resource().Resource},
				},
			}},
			SideEffects: &none, ReinvocationPolicy: &again, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	r.install(configuration)
}

func (r release) installPolicy() {
	r.t.Helper()
	policy, binding, err := diskMigration.Policy(strings.ToLower(r.kind), r.resource())
	if err != nil {
		r.t.Fatal(err)
	}
	r.install(policy)
	r.install(binding)
}

// install creates an object of the whole cluster until the test ends.
func (r release) install(o client.Object) {
	r.t.Helper()
	r.create(o)
	r.t.Cleanup(func() {
		if err := r.client.Delete(context.WithoutCancel(r.t.Context()), o); err != nil {
			r.t.Error(err)
		}
	})
}

// A value that is the same for all objects needs no admission: the API server reads the default of a
// schema into each object that it serves, those that exist included.
func TestFieldsByDefault(t *testing.T) {
	r := newRelease(t, "DefaultField", release1)
	old := r.object("old", map[string]any{"name": "a"})
	r.create(old)
	version := old.GetResourceVersion()
	fields := *release2.DeepCopy()
	region := fields.Properties["region"]
	region.Default = &apiextensionsv1.JSON{Raw: []byte(`"eu1"`)}
	fields.Properties["region"] = region
	r.update(fields, func(o *unstructured.Unstructured, err error) bool {
		_, found, _ := unstructured.NestedString(o.Object, "spec", "forProvider", "region")
		return found && err == nil
	}, map[string]any{"name": "a"})
	made := r.object("new", map[string]any{"name": "a"})
	r.create(made)
	for range 2 {
		r.checkFields(made, map[string]any{"name": "a", "region": "eu1"})
		r.checkFields(old, map[string]any{"name": "a", "region": "eu1"})
	}
	if old.GetResourceVersion() != version {
		t.Error("the object that exists was written")
	}
}

// 50: rules of the CRD refuse a change of the identity, its removal included.
func TestKeyFieldsAreImmutable(t *testing.T) {
	shape := memberNames.Describe()
	rules, err := fieldmigration.Constraints(shape,
		fieldmigration.KeyField{Segment: "group", Field: "group", Optional: true}, fieldmigration.KeyField{Segment: "member", Field: "member"})
	if err != nil {
		t.Fatal(err)
	}
	free := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"member"}, Properties: properties{
		"group": field("string"), "member": field("string"), "title": field("string"),
	}}
	fields := *free.DeepCopy()
	for _, c := range rules {
		if c.Field == "" {
			fields.XValidations = append(fields.XValidations, c.Rule)
			continue
		}
		one := fields.Properties[c.Field]
		one.XValidations = append(one.XValidations, c.Rule)
		fields.Properties[c.Field] = one
	}
	r := newRelease(t, "KeyField", free)
	const group, other = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11", "00000000-6a5d-4f0e-8d2c-9d8f2f8d1a11"
	old := r.object("old", map[string]any{"group": group, "member": "jane"})
	r.create(old)
	r.update(fields, func(_ *unstructured.Unstructured, err error) bool { return err != nil }, map[string]any{"group": "no GUID", "member": "jane"})
	made := r.object("new", map[string]any{"member": "jane"})
	r.create(made)
	r.patch(made, fmt.Sprintf(`{"spec":{"forProvider":{"group":%q}}}`, group)) // as a reference that is resolved

	cases := []struct {
		reason, patch, refusal string
	}{
		{"the identity changes", fmt.Sprintf(`{"spec":{"forProvider":{"group":%q}}}`, other), "can't change"},
		{"the identity is removed", `{"spec":{"forProvider":{"group":null}}}`, "can't change"},
		{"the parameters are removed", `{"spec":{"forProvider":null}}`, "Required value"},
		{"the spec is removed", `{"spec":null}`, "Required value"},
		{"the member is blank", `{"spec":{"forProvider":{"member":" "}}}`, "member must be"},
		{"the member is a step of a path", `{"spec":{"forProvider":{"member":".."}}}`, "member must be"},
		{"the group is no GUID", `{"spec":{"forProvider":{"group":"urn:uuid:0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"}}}`, "must be a GUID"},
		{"the name is too long", fmt.Sprintf(`{"spec":{"forProvider":{"member":%q}}}`, strings.Repeat("é", 240)), "512 bytes"},
		{"letter case has no meaning in a GUID", fmt.Sprintf(`{"spec":{"forProvider":{"group":%q}}}`, strings.ToUpper(group)), ""},
		{"the member may change", `{"spec":{"forProvider":{"member":"john"}}}`, ""},
		{"other fields may change", `{"spec":{"forProvider":{"title":"boss"}}}`, ""},
	}
	for range 2 {
		for _, o := range []*unstructured.Unstructured{old, made} {
			for _, tc := range cases {
				err := r.client.Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(tc.patch)))
				if (err != nil) != (tc.refusal != "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
					t.Errorf("%s: %s: %v, want %q", o.GetName(), tc.reason, err, tc.refusal)
				}
			}
		}
	}
}

// A field that the user may leave to the external system is filled in status.atProvider only.
func TestFieldsByLateInitializationIntoStatus(t *testing.T) {
	w := newWorld(t)
	kind := persons(w.wire)
	kind.Connect = changed(kind.Connect, func(e *personExternal) {
		compare := e.Diff
		e.Diff = func(p *person, o entry) []crossplane.Difference {
			if p.Spec.ForProvider.Mail == "" {
				o.Mail = "" // The spec leaves it to the directory.
			}
			return compare(p, o)
		}
	})
	existing, err := w.store.Add(t.Context(), entry{Name: "old", Mail: "old@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	run(w, kind, options{})
	old, made := w.person("old", named(existing.ID)), w.person("new", nil)
	w.awaitPerson(made, "created", bound)
	w.store.change(meta.GetExternalName(made), func(e *entry) bool { e.Mail = "new@example.org"; return true })
	for range 2 {
		for _, p := range []*person{old, made} {
			want := p.Name + "@example.org"
			w.awaitPerson(p, "filled", func(p *person) bool { return synced(p) && p.Status.AtProvider.Mail == want })
			if p.Spec.ForProvider.Mail != "" || p.Generation != 1 {
				t.Errorf("%s: the spec was written: %+v, generation %d", p.Name, p.Spec.ForProvider, p.Generation)
			}
		}
		w.passes(4)
	}
	if n := w.wire.count("Write"); n != 0 {
		t.Errorf("%d updates of the directory, want none", n)
	}
}

type personExternal = crossplane.External[*person, string, entry]

// changed connects, and changes the client.
func changed(
	connect func(context.Context, *person) (personExternal, error), change func(*personExternal),
) func(context.Context, *person) (personExternal, error) {
	return func(ctx context.Context, p *person) (personExternal, error) {
		e, err := connect(ctx, p)
		change(&e)
		return e, err
	}
}

// What needs the state of the external system is migrated by the controller: release 1 stored an address
// as text, release 2 stores it as a URI. The diff shows entries of release 1, and Update migrates them.
func TestFieldsByController(t *testing.T) {
	const scheme = "mailto:"
	w := newWorld(t)
	kind := persons(w.wire)
	kind.Connect = changed(kind.Connect, func(e *personExternal) {
		compare, create := e.Diff, e.Create
		e.Diff = func(p *person, o entry) []crossplane.Difference {
			address, migrated := strings.CutPrefix(o.Mail, scheme)
			o.Mail = address
			left := compare(p, o)
			if !migrated {
				left = append(left, crossplane.Difference{Field: "mail", Desired: "a URI", Observed: "text of release 1"})
			}
			return left
		}
		asURI := func(p *person) *person {
			p.Spec.ForProvider.Mail = scheme + p.Spec.ForProvider.Mail // of the copy
			return p
		}
		e.Create = func(ctx context.Context, p *person) (crossplane.Created[string], error) { return create(ctx, asURI(p)) }
		update := e.Update
		e.Update = func(ctx context.Context, p *person, id string, o entry) (string, error) {
			return update(ctx, asURI(p), id, o)
		}
	})
	existing, err := w.store.Add(t.Context(), entry{Name: "old", Mail: "old@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	run(w, kind, options{})
	mail := func(p *person) { p.Spec.ForProvider.Mail = p.Name + "@example.org" }
	old := w.person("old", func(p *person) { named(existing.ID)(p); mail(p) })
	made := w.person("new", mail)
	for range 2 {
		for _, p := range []*person{old, made} {
			w.awaitPerson(p, "migrated", func(p *person) bool { return bound(p) && p.Status.AtProvider.Mail == scheme+p.Name+"@example.org" })
			if p.Spec.ForProvider.Mail != p.Name+"@example.org" || p.Generation != 1 {
				t.Errorf("%s: the spec was written: %+v, generation %d", p.Name, p.Spec.ForProvider, p.Generation)
			}
		}
		w.passes(4)
	}
	if n := w.wire.count("Write"); n != 1 {
		t.Errorf("%d updates of the directory, want one, of the entry of release 1", n)
	}
	w.checkEntries(2)
}
