package externalname_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit"
	ldapv1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	ldap "github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/examples/provider-ldap/provider"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/exporttest"
	"github.com/godwit-dev/godwit/externalname/crossplane/export"
	imports "github.com/godwit-dev/godwit/externalname/ready"
	"github.com/godwit-dev/godwit/test/slapd"
)

// command runs the provider's command in this process.
func (w *directoryWorld) command(args ...string) (stdout, stderr string, err error) {
	w.t.Helper()
	var out, errs bytes.Buffer
	c := provider.Command(cluster)
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&errs)
	err = c.ExecuteContext(w.t.Context())
	return out.String(), errs.String(), err
}

// documents decodes standard output strictly. What is no manifest of the provider is an error.
func documents(t *testing.T, text string) []resource.Managed {
	t.Helper()
	var list []resource.Managed
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		mg := map[string]resource.Managed{"Person": &ldapv1.Person{}, "Group": &ldapv1.Group{}, "Membership": &ldapv1.Membership{}}[kind.Kind]
		if mg == nil {
			t.Fatalf("standard output has %q", document)
		}
		if err := yaml.UnmarshalStrict(document, mg); err != nil {
			t.Fatal(err)
		}
		list = append(list, mg)
	}
}

// 43, 44, 45: what is exported, applied, and then managed, changes nothing in the directory. The bytes are the same each
// time, the names are unique, and references lead to the exported groups.
func TestExport(t *testing.T) {
	w := newDirectoryWorld(t)
	writes := w.countWrites()
	for i := range slapd.SizeLimit + 1 { // More than a search returns that is not paged.
		w.addPerson(fmt.Sprintf("user%02d", i), "")
	}
	for _, uid := range []string{"J.Doe", "j-doe", "Jörg / 100%", "true"} {
		w.addPerson(uid, "j@example.org")
	}
	group := w.addGroup("All: #1", `cn=Jane/Doe\, 50%,dc=example,dc=org`, "uid=true,"+w.config.BaseDN)

	first, log, err := w.command("export", "-n", w.namespace, "--dry-run")
	if err != nil || !strings.Contains(log, fmt.Sprintf("Person: %d listed, %[1]d exported", slapd.SizeLimit+5)) {
		t.Fatalf("%v\n%s", err, log)
	}
	if again, _, err := w.command("export", "-n", w.namespace, "--dry-run"); err != nil || again != first {
		t.Errorf("the second export differs (%v)", err)
	}
	manifests := documents(t, first)
	if len(manifests) != slapd.SizeLimit+5+1+2 {
		t.Fatalf("%d manifests", len(manifests))
	}
	names, valid := map[string]bool{}, regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	for _, mg := range manifests {
		name := fmt.Sprintf("%T/%s", mg, mg.GetName())
		if names[name] || !valid.MatchString(mg.GetName()) || meta.GetExternalName(mg) == "" || !slices.Equal(mg.GetManagementPolicies(), xpv2.ManagementPolicies{"Observe"}) {
			t.Errorf("%s: external name %q, policies %v", name, meta.GetExternalName(mg), mg.GetManagementPolicies())
		}
		names[name] = true
		if m, ok := mg.(*ldapv1.Membership); ok && (m.Spec.ForProvider.Group != "" || m.Spec.ForProvider.GroupRef.Name != "all-1" || !strings.HasPrefix(meta.GetExternalName(m), group+"/")) {
			t.Errorf("membership %+v", m.Spec.ForProvider)
		}
	}

	w.startProvider()
	for _, mg := range manifests {
		w.create(mg)
	}
	for _, mg := range manifests {
		awaitInSync(w, mg)
	}
	out, notReady, err := w.command("ready", "-n", w.namespace)
	if err != nil || strings.Count(out, "\n") != len(manifests) || notReady != "" {
		t.Fatalf("ready: %v\n%s%s", err, out, notReady)
	}
	for _, mg := range manifests {
		if !strings.Contains(out, " "+mg.GetName()+" -n "+w.namespace+" --type=merge -p '"+imports.Patch+"'\n") {
			t.Errorf("ready does not print %s", mg.GetName())
		}
		w.patch(mg.(client.Object), imports.Patch)
	}
	for _, mg := range manifests {
		awaitInSync(w, mg)
	}
	if n := writes.Load(); n != 0 {
		t.Errorf("%d writes to the directory", n)
	}
}

// The conformance kit proves the provider's own export.
func TestExportConforms(t *testing.T) {
	w := newDirectoryWorld(t)
	want := []string{w.addPerson("Jane", ""), w.addPerson("jane.", "")}
	group := w.addGroup("admins", "uid=jane,dc=example,dc=org")
	want = append(want, group, group+"/uid=jane,dc=example,dc=org")
	exporttest.Run(t, exporttest.Tool{
		Run: func(ctx context.Context, stdout, stderr io.Writer) error {
			c := provider.Command(cluster)
			c.SetArgs([]string{"export", "-n", w.namespace})
			c.SetOut(stdout)
			c.SetErr(stderr)
			return c.ExecuteContext(ctx)
		},
		Names:  func(context.Context) ([]string, error) { return slices.Clone(want), nil },
		Config: shared.Config(),
	})
}

// awaitInSync waits until the provider has compared the object as it is now.
func awaitInSync(w *directoryWorld, mg resource.Managed) {
	w.t.Helper()
	awaitObject(w.world, mg, "in sync", func(mg resource.Managed) bool {
		drift := mg.GetCondition(crossplane.TypeDrift)
		return isBound(mg) && drift.Status == corev1.ConditionFalse && drift.ObservedGeneration == mg.GetGeneration()
	})
}

// What can't be proven is not exported, the rest is, and the exit code says so.
func TestExportPartly(t *testing.T) {
	w := newDirectoryWorld(t)
	bad := w.addPerson("bad", "bad@example.org")
	w.addPerson("good", "")
	kind := func(change func(*export.Options[*ldapv1.Person, *ldap.Entry])) export.Kind {
		o := export.Options[*ldapv1.Person, *ldap.Entry]{
			New: func() *ldapv1.Person { p := w.ldapPerson("x"); p.Name = ""; return p },
			Fill: func(p *ldapv1.Person, e *ldap.Entry) {
				p.Spec.ForProvider = ldapv1.PersonParameters{Parent: w.config.BaseDN, UID: e.First("uid"), CommonName: e.First("cn"), Surname: e.First("sn"), Mail: e.First("mail")}
			},
			Name: func(e *ldap.Entry) string { return e.First("uid") },
		}
		change(&o)
		return export.Of(provider.Persons(w.at), o)
	}
	fill := func(after func(*ldapv1.Person)) func(*export.Options[*ldapv1.Person, *ldap.Entry]) {
		return func(o *export.Options[*ldapv1.Person, *ldap.Entry]) {
			inner := o.Fill
			o.Fill = func(p *ldapv1.Person, e *ldap.Entry) { inner(p, e); after(p) }
		}
	}
	refuseBad := func(_ context.Context, manifest []byte) error {
		if bytes.Contains(manifest, []byte(bad)) {
			return errors.New("denied\x1b[2J")
		}
		return nil
	}
	for reason, c := range map[string]struct {
		change func(*export.Options[*ldapv1.Person, *ldap.Entry])
		check  func(context.Context, []byte) error
		code   export.Code
		log    string
	}{
		"everything":            {fill(func(*ldapv1.Person) {}), nil, export.OK, "2 listed, 2 exported"},
		"a field is not filled": {fill(func(p *ldapv1.Person) { p.Spec.ForProvider.Mail = "" }), nil, export.Partial, "differs from the external resource in mail"},
		"the name is changed":   {fill(func(p *ldapv1.Person) { meta.SetExternalName(p, unknownID) }), nil, export.Error, "must not change it"},
		"admission":             {fill(func(*ldapv1.Person) {}), refuseBad, export.Partial, `denied\x1b[2J`},
		"a strict dry run":      {fill(func(p *ldapv1.Person) { p.Namespace = "missing" }), export.DryRun(w.client), export.Error, "not found"},
		"a function is missing": {func(o *export.Options[*ldapv1.Person, *ldap.Entry]) { o.Name = nil }, nil, export.Error, "New, Fill and Name"},
	} {
		t.Run(reason, func(t *testing.T) {
			var out, log bytes.Buffer
			report, err := export.Exporter{Kinds: []export.Kind{kind(c.change)}, Out: &out, Log: &log, Check: c.check}.Run(t.Context())
			if code := export.CodeOf(report, err); code != c.code || !strings.Contains(log.String(), c.log) || strings.Contains(log.String(), "\x1b") {
				t.Errorf("code %d (%v), log:\n%s", code, err, &log)
			}
			if got, want := len(documents(t, out.String())), map[export.Code]int{export.OK: 2, export.Partial: 1}[c.code]; got != want {
				t.Errorf("%d manifests, want %d", got, want)
			}
		})
	}
}

// A directory that can't be reached, or that stops in the middle, is not an empty one.
func TestExportIncomplete(t *testing.T) {
	w := newDirectoryWorld(t)
	w.addPerson("jane", "")
	searches := 0
	p := newProxy(t, server.Address(), func(tag byte) bool {
		if tag == searchRequest {
			searches++
		}
		return searches == 3 // The list of groups, after the list of persons and the person.
	})
	flags := []string{"export", "-n", w.namespace, "--base-dn", w.config.BaseDN, "--bind-dn", w.config.BindDN}
	out, log, err := w.command(append(flags, "--url", "ldap://"+p.listener.Addr().String())...)
	var exit *provider.ExitError
	if !errors.As(err, &exit) || exit.Code != export.Partial || len(documents(t, out)) != 1 || !strings.Contains(log, "warning: Group: not all external resources are known") {
		t.Errorf("%v\n%s%s", err, out, log)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	out, log, err = w.command(append(flags, "--url", "ldap://"+closed.Addr().String())...)
	if !errors.As(err, &exit) || exit.Code != export.Error || out != "" || !strings.Contains(log, "connection refused") {
		t.Errorf("%v\n%s%s", err, out, log)
	}
	at := func(context.Context, resource.ModernManaged) (*ldap.Client, error) { return ldap.New(w.config), nil }
	exporter := export.Exporter{Kinds: provider.Exports(at, types.NamespacedName{Name: "default"}), Out: io.Discard, Log: io.Discard}
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for code, ctx := range map[export.Code]context.Context{export.TimedOut: late, export.Interrupted: interrupted} {
		if report, err := exporter.Run(ctx); export.CodeOf(report, err) != code {
			t.Errorf("want code %d: %v", code, err)
		}
	}
}

// What is deleted during an export is no failure.
func TestExportGone(t *testing.T) {
	w := newDirectoryWorld(t)
	w.addPerson("jane", "")
	persons := provider.Persons(w.at)
	connect := persons.Connect
	persons.Connect = func(ctx context.Context, p *ldapv1.Person) (crossplane.External[*ldapv1.Person, string, *ldap.Entry], error) {
		e, err := connect(ctx, p)
		list := e.List
		e.List = func(ctx context.Context) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				if yield(unknownID, nil) {
					list(ctx)(yield)
				}
			}
		}
		return e, err
	}
	var out, log bytes.Buffer
	kind := export.Of(persons, export.Options[*ldapv1.Person, *ldap.Entry]{
		New: func() *ldapv1.Person { return w.ldapPerson("x") },
		Fill: func(p *ldapv1.Person, e *ldap.Entry) {
			p.Spec.ForProvider = ldapv1.PersonParameters{Parent: w.config.BaseDN, UID: e.First("uid"), CommonName: e.First("cn"), Surname: e.First("sn")}
		},
		Name: func(e *ldap.Entry) string { return e.First("uid") },
	})
	report, err := export.Exporter{Kinds: []export.Kind{kind}, Out: &out, Log: &log}.Run(t.Context())
	if export.CodeOf(report, err) != export.OK || len(documents(t, out.String())) != 1 || !strings.Contains(log.String(), "1 were deleted during the export") {
		t.Errorf("%v\n%s%s", err, &out, &log)
	}
}

// Objects whose spec differs, that are not compared, or that are paused are not ready, and managing none is offered.
func TestReady(t *testing.T) {
	w := newDirectoryWorld(t)
	run(w.world, provider.Persons(w.at), options{})
	for name, change := range map[string]func(*ldapv1.Person){
		"in-sync": func(*ldapv1.Person) {},
		"differs": func(p *ldapv1.Person) { p.Spec.ForProvider.Title = "boss" },
		"missing": func(p *ldapv1.Person) { meta.SetExternalName(p, unknownID) },
		"paused": func(p *ldapv1.Person) {
			meta.AddAnnotations(p, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
		},
		"managed": func(p *ldapv1.Person) { p.Spec.ManagementPolicies = xpv2.ManagementPolicies{"*"} },
	} {
		p := w.ldapPerson(name)
		p.Spec.ManagedResourceSpec = spec("Observe")
		meta.SetExternalName(p, w.addPerson(name, ""))
		change(p)
		w.create(p)
	}
	for _, name := range []string{"in-sync", "differs", "managed"} {
		awaitObject(w.world, w.ldapPerson(name), "observed", isBound[*ldapv1.Person])
	}
	awaitObject(w.world, w.ldapPerson("missing"), "refused", isRefused[*ldapv1.Person]("does not exist"))
	out, log, err := w.command("ready", "-n", w.namespace)
	var exit *provider.ExitError
	if !errors.As(err, &exit) || exit.Code != 1 || out != "kubectl patch person.ldap.example.org in-sync -n "+w.namespace+" --type=merge -p '"+imports.Patch+"'\n" {
		t.Errorf("%v\n%s", err, out)
	}
	for name, reason := range map[string]*godwit.Reason{"differs": imports.Differs, "missing": imports.NotSynced, "paused": imports.Paused} {
		if !strings.Contains(log, fmt.Sprintf("Person %s/%s: %s: ", w.namespace, name, reason)) {
			t.Errorf("%s is not %s:\n%s", name, reason, log)
		}
	}
	if strings.Contains(log, "managed:") {
		t.Error(log)
	}
}
